// Binds kernels and matmuls of a program, runs them, and keeps the filters packed that no instruction writes.
#include "par/cpu/LocalSteps.h"
#include "par/format/WrittenBuffers.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace par::cpu {

using core::Failure;
using core::Message;
using format::Op;

namespace {

/// That its operands and immediates are those of the table is verified.
const kernels::BuiltinKernel &builtinOf(const format::Kernel &kernel, const std::string &place) {
  if (const kernels::BuiltinKernel *builtin = kernels::findBuiltin(kernel.symbol))
    return *builtin;
  throw Failure::at(place, Message::noBuiltin, kernel.name, kernel.symbol);
}

template <typename T>
void fillWith(void *to, uint64_t bytes, double value) {
  std::fill_n(static_cast<T *>(to), bytes / sizeof(T), static_cast<T>(value));
}

void fillBuffer(void *to, format::DType type, uint64_t bytes, double value, const char *id) {
  if (value == 0) {
    std::memset(to, 0, bytes);
    return;
  }
  switch (type) {
  case format::DType::F32:
    return fillWith<float>(to, bytes, value);
  case format::DType::F64:
    return fillWith<double>(to, bytes, value);
  case format::DType::I64:
    return fillWith<int64_t>(to, bytes, value);
  case format::DType::I32:
    return fillWith<int32_t>(to, bytes, value);
  case format::DType::I1:
  case format::DType::U8:
    return fillWith<uint8_t>(to, bytes, value);
  default:
    throw Failure::at("", Message::unsupportedInstruction, id, "fill of " + std::string(format::toString(type)));
  }
}

} // namespace

LocalSteps::LocalSteps(const core::DeviceOptions &options, const MatmulChoices &choices) : pool(options.threads) {
  bindKernels(options);
  for (const format::Call &call : options.program().calls) {
    if (call.epilogue != format::Epilogue::None)
      throw Failure::at(options.folder, Message::unsupportedInstruction, "call \"" + call.name + "\"",
                        "epilogue " + std::string(format::toString(call.epilogue)) + " on the CPU");
    auto choice = choices.find(shapeKey(call));
    calls.push_back({makeMatmul(call, choice == choices.end() ? MatmulChoice{} : choice->second, options.folder),
                     call.bias, call.workspace > 0});
  }
}

void LocalSteps::bindKernels(const core::DeviceOptions &options) {
  const std::vector<format::Kernel> &table = options.program().kernels;
  if (std::any_of(table.begin(), table.end(), [](const format::Kernel &kernel) { return !kernel.builtin; }))
    object = KernelObject(options.pathOf("kernels-x86.so"), options.listed("kernels-x86.so"));
  for (const format::Kernel &kernel : table) {
    if (kernel.builtin)
      kernels.push_back({kernels::builtinFunction(kernel.symbol), 0, &builtinOf(kernel, options.folder)});
    else
      kernels.push_back({object.function(kernel.symbol, kernel.name), kernel.tiles, nullptr});
  }
}

void LocalSteps::keepFilters(const format::Program &program) {
  std::vector<bool> written = format::writtenBuffers(program);
  for (const format::Block &block : program.blocks)
    for (const format::Instruction &instruction : block.instructions) {
      if (instruction.op != Op::Kernel || !kernels[instruction.kernel].builtin)
        continue;
      std::string_view name = kernels[instruction.kernel].builtin->name;
      bool isInPlace = name == "convolution_last_add";
      if (!isInPlace && name != "convolution_last")
        continue;
      uint32_t filter = instruction.operands[1].buffer;
      const format::Buffer &buffer = program.buffers[filter];
      if (buffer.kind != format::BufferKind::State || buffer.of != format::noIndex || written[filter])
        continue;
      placeOf[&instruction] = convolutions.size();
      convolutions.emplace_back(isInPlace ? kernels::ResidualPlace::Result : kernels::ResidualPlace::Operand);
    }
}

void LocalSteps::forgetFilters() {
  for (kernels::PackedConvolution &convolution : convolutions)
    convolution.forget();
}

/// "filter 7 3f2a...": the convolution, and what the packed filter depends on beside the filter.
static std::string filterName(size_t place, const std::string &kind) {
  return core::format("filter {} {}", place, kind);
}

std::vector<core::Prepared> LocalSteps::keptFilters() const {
  std::vector<core::Prepared> kept;
  for (size_t i = 0; i < convolutions.size(); ++i)
    if (std::optional<kernels::PackedFilter> filter = convolutions[i].packedFilter())
      kept.push_back({filterName(i, filter->kind), std::as_bytes(filter->values)});
  return kept;
}

void LocalSteps::takeFilters(const std::vector<core::Prepared> &given) {
  for (const core::Prepared &one : given)
    for (size_t i = 0; i < convolutions.size(); ++i)
      if (std::string begin = filterName(i, ""); one.name.starts_with(begin))
        convolutions[i].lend({one.name.substr(begin.size()),
                              {reinterpret_cast<const float *>(one.bytes.data()), one.bytes.size() / sizeof(float)}});
}

uint64_t LocalSteps::keptBytes() const {
  uint64_t bytes = 0;
  for (const kernels::PackedConvolution &convolution : convolutions)
    bytes += convolution.bytes();
  return bytes;
}

void LocalSteps::runKernel(const BoundKernel &kernel, void *const *operands, const uint64_t *immediates) {
  uint32_t tiles = kernel.builtin
                       ? kernels::builtinTiles(*kernel.builtin, {immediates, kernel.builtin->immediates.size()})
                       : kernel.tiles;
  pool.run(kernel.function, operands, immediates, tiles);
}

void LocalSteps::execute(const core::ExpandedEntry &entry, const core::Command &step, core::EntryHost &host) {
  void *const *operands = entry.pointers.data() + step.operands;
  switch (step.op) {
  case Op::Kernel:
    if (auto kept = placeOf.find(step.instruction); kept != placeOf.end())
      return convolutions[kept->second].run(operands, entry.immediates.data() + step.immediates);
    return runKernel(kernels[step.instruction->kernel], operands, entry.immediates.data() + step.immediates);
  case Op::Call:
    return runCall(calls[step.instruction->call], operands);
  case Op::Copy:
    std::memcpy(operands[1], operands[0], step.bytes);
    return;
  case Op::Fill:
    return fillBuffer(operands[0], step.type, step.bytes, step.value, step.id);
  case Op::Feed:
    host.feed(*step.input, step.microbatch, {static_cast<std::byte *>(operands[0]), step.bytes});
    return;
  case Op::Fetch:
    host.fetch(*step.output, step.microbatch, step.type, {static_cast<const std::byte *>(operands[0]), step.bytes});
    return;
  default:
    throw Failure::at("", Message::unsupportedInstruction, step.id, format::toString(step.op));
  }
}

void LocalSteps::runCall(const BoundCall &call, void *const *operand) {
  auto *a = static_cast<const float *>(*operand++), *b = static_cast<const float *>(*operand++);
  auto *bias = call.bias ? static_cast<const float *>(*operand++) : nullptr;
  auto *c = static_cast<float *>(*operand++);
  call.matmul->run(a, b, bias, c, call.workspace ? *operand : nullptr);
}

bool communicates(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv || op == Op::Group; }

} // namespace par::cpu
