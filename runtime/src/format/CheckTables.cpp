// The tables of a program are sound.
#include "CheckProgram.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

using namespace par::format;

static constexpr uint64_t maxBytes = uint64_t(1) << 47;
static constexpr int64_t auxMultiple = 8; ///< libraries want a multiple of this as the leading stride of aux
/// Maximum instructions of an expanded entry, and maximum matmuls of a call.
static constexpr uint64_t maxExpanded = uint64_t(1) << 24;

/// Bytes of a slot, none of an empty one; nothing if a dim is negative or the product of the others is over maxBytes.
static std::optional<uint64_t> soundBytes(const Buffer &buffer) {
  uint64_t n = sizeOf(buffer.type);
  bool empty = false;
  for (int64_t dim : buffer.shape) {
    if (dim < 0 || uint64_t(dim) > maxBytes / n)
      return std::nullopt;
    empty |= dim == 0;
    n *= std::max<uint64_t>(1, uint64_t(dim));
  }
  return empty ? 0 : n;
}

template <typename T>
Status Checker::unique(const std::vector<T> &table, const char *what) const {
  std::unordered_set<std::string_view> seen;
  for (const T &element : table) {
    std::string_view name;
    if constexpr (std::is_same_v<T, std::string>)
      name = element;
    else
      name = element.name;
    if (name.empty() || name.find_first_of(" @\"\n") != name.npos)
      return fail(what, "'" + std::string(name) + "' is not a name");
    if (!seen.insert(name).second)
      return fail(what, "'" + std::string(name) + "' stands there twice");
  }
  return {};
}

/// An alias lies inside a buffer of its own, slot for slot.
Status Checker::alias(const Buffer &buffer, const std::string &place) const {
  if (buffer.of >= program.buffers.size() || program.buffers[buffer.of].of != noIndex)
    return fail(place, "an alias must lie in a buffer that is not an alias");
  const Buffer &root = program.buffers[buffer.of];
  if (root.space != buffer.space || root.index != buffer.index || root.kind != buffer.kind)
    return fail(place, "space, kind and index must be those of '" + root.name + "', in which it lies");
  if (!buffer.at.empty())
    return fail(place, "an alias has no offsets of its own");
  std::optional<uint64_t> bytes = soundBytes(buffer), room = soundBytes(root);
  if (!bytes || !room || buffer.offset > *room || *bytes > *room - buffer.offset)
    return fail(place, "bytes [" + number(buffer.offset) + ", +" + number(bytes.value_or(0)) + ") exceed the " +
                           number(room.value_or(0)) + " of '" + root.name + "'");
  if (buffer.offset % sizeOf(buffer.type))
    return fail(place, "offset " + number(buffer.offset) + " is not a multiple of its element's " +
                           number(sizeOf(buffer.type)) + " bytes");
  return {};
}

Status Checker::buffer(const Buffer &buffer) const {
  std::string place = "buffers." + buffer.name;
  bool named = buffer.kind == BufferKind::State || buffer.kind == BufferKind::Hyper;
  if (buffer.of == noIndex && named == buffer.tensor.empty())
    return fail(place, named ? "a buffer of kind 'state' or 'hyper' names its tensor or hyperparameter"
                             : "only a buffer of kind 'state' or 'hyper' names a tensor");
  if (buffer.of != noIndex)
    return alias(buffer, place);
  std::optional<uint64_t> sound = soundBytes(buffer);
  if (!sound)
    return fail(place, "its shape " + describe(buffer) + " has a dim below 0 or more than 2^47 bytes");
  uint64_t bytes = *sound;
  if (buffer.at.empty() || buffer.at.size() > (1u << 20))
    return fail(place, number(buffer.at.size()) + " slots, expected 1 to 2^20");
  if (buffer.index == Index::None && buffer.at.size() != 1)
    return fail(place, number(buffer.at.size()) + " slots but no index");
  uint64_t begin = 0, end = program.arena.host;
  if (buffer.space == Space::Dev) {
    bool state = buffer.kind == BufferKind::State;
    begin = state ? 0 : program.arena.state;
    end = state ? program.arena.state : program.arena.deviceBytes();
  }
  for (uint64_t at : buffer.at) {
    if (at % arenaAlignment)
      return fail(place, "offset " + number(at) + " is not a multiple of " + number(arenaAlignment));
    if (at < begin || at > end || bytes > end - at)
      return fail(place, "bytes [" + number(at) + ", +" + number(bytes) + ") are outside its arena's [" +
                             number(begin) + ", " + number(end) + ")");
  }
  return {};
}

Status Checker::epilogue(const Call &call, const std::string &place) const {
  if (call.epilogue == Epilogue::None)
    return {};
  std::string name = "epilogue " + std::string(toString(call.epilogue));
  if (call.type == DType::F64)
    return fail(place, name + " of f64 is not supported");
  if (call.sums()) {
    if (!call.batch.empty() || call.typeC != DType::F32 || call.bias)
      return fail(place, name + " needs one matmul without a batch, C of f32 and no bias");
    if (call.epilogue == Epilogue::SumA ? !call.transA : call.transB)
      return fail(place, name + " needs its operand stored with the sum's elements side by side");
    return {};
  }
  bool plain = call.batch.empty() && call.alpha == 1 && call.beta == 0 && call.typeC == call.type;
  if (!plain || call.ldc % auxMultiple)
    return fail(place, name + " needs one matmul with alpha 1, beta 0, C of the operands' type and ldc a multiple of " +
                           number(auxMultiple));
  if (call.epilogue == Epilogue::GeluGrad && call.bias)
    return fail(place, name + " has no bias");
  return {};
}

Status Checker::call(const Call &call) const {
  std::string place = "calls." + call.name;
  if (call.kind != "matmul")
    return fail(place, "unknown kind '" + call.kind + "'");
  if (call.type != DType::F32 && call.type != DType::F64 && call.type != DType::BF16 && call.type != DType::F16)
    return fail(place, "a matmul of " + std::string(toString(call.type)) + " is not supported");
  bool narrow = call.type == DType::BF16 || call.type == DType::F16;
  if (call.typeC != call.type && !(narrow && call.typeC == DType::F32 && !call.bias))
    return fail(place, "a matmul of " + std::string(toString(call.type)) + " into " +
                           std::string(toString(call.typeC)) + " is not supported");
  if (Status sound = epilogue(call, place); !sound)
    return sound;
  size_t dims = call.batch.size();
  if (call.strideA.size() != dims || call.strideB.size() != dims || call.strideC.size() != dims)
    return fail(place, "every batch dim needs a stride of A, B and C");
  for (const std::vector<int64_t> *numbers : {&call.batch, &call.strideA, &call.strideB, &call.strideC})
    for (int64_t n : *numbers)
      if (n < (numbers == &call.batch ? 1 : 0))
        return fail(place, "negative batch dim or stride " + std::to_string(n));
  uint64_t products = 1;
  for (int64_t size : call.batch)
    if (products > maxExpanded / uint64_t(size))
      return fail(place, "a batch of more than 2^24 matmuls");
    else
      products *= uint64_t(size);
  for (size_t i = 0; i < dims; ++i)
    if (call.batch[i] > 1 && call.strideC[i] == 0)
      return fail(place, "C repeats over batch dim " + number(i));
  if (call.m < 1 || call.n < 1 || call.k < 1)
    return fail(place, "m, n and k must be at least 1");
  if (call.lda < (call.transA ? call.m : call.k) || call.ldb < (call.transB ? call.k : call.n) || call.ldc < call.n)
    return fail(place, "a leading stride is shorter than its row");
  for (char which : {'a', 'b', 'c'})
    if (call.extent(which) == 0 || call.extent(which) > maxBytes)
      return fail(place, std::string("the extent of operand ") + which + " is more than 2^47 elements");
  return {};
}

/// One for each operand that is written; each names operands that are read and immediates that there are.
Status Checker::dependences(const Kernel &kernel) const {
  std::string place = "kernels." + kernel.name + ".deps";
  auto written =
      size_t(std::ranges::count_if(kernel.operands, [](const KernelOperand &it) { return it.access != Access::Read; }));
  if (!kernel.deps.empty() && kernel.deps.size() != written)
    return fail(place,
                number(kernel.deps.size()) + " dependences for " + number(written) + " operands that are written");
  for (const Dependence &dependence : kernel.deps) {
    for (uint32_t operand : dependence.operands)
      if (operand >= kernel.operands.size() || kernel.operands[operand].access == Access::Write)
        return fail(place, "the kernel does not read operand " + number(operand));
    for (uint32_t imm : dependence.imms)
      if (imm >= kernel.imms)
        return fail(place, "no immediate " + number(imm) + " among " + number(kernel.imms));
  }
  return {};
}

/// A GPU can start it. The limits are those of every GPU since sm_80; grid and block are those of the driver.
Status Checker::launch(const Kernel &kernel) const {
  const Launch &launch = kernel.launch;
  if (launch == Launch())
    return {};
  std::string place = "kernels." + kernel.name;
  if (kernel.builtin)
    return fail(place, "the runtime chooses the launch of a builtin");
  for (uint32_t size :
       {launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0], launch.block[1], launch.block[2]})
    if (size == 0)
      return fail(place, "a launch of no threads");
  if (launch.grid[0] > INT32_MAX || launch.grid[1] > UINT16_MAX || launch.grid[2] > UINT16_MAX)
    return fail(place, "a grid of more than 2^31-1 x 65535 x 65535 blocks");
  if (launch.block[0] > maxThreads || launch.block[1] > maxThreads || launch.block[2] > 64 ||
      launch.threads() > maxThreads)
    return fail(place, "a block of " + number(launch.threads()) + " threads, at most " + number(maxThreads) +
                           " and 64 along z");
  if (launch.shared > maxShared)
    return fail(place, number(launch.shared) + " bytes of shared memory, at most " + number(maxShared));
  if (kernel.tiles != 1)
    return fail(place, number(kernel.tiles) + " tiles; a GPU's kernel is one launch");
  return {};
}

Status Checker::entry(const Entry &entry) const {
  uint64_t expanded = 0;
  for (size_t i = 0; i < entry.runs.size(); ++i) {
    const Run &run = entry.runs[i];
    std::string place = "entries." + entry.name + "[" + number(i) + "]";
    if (run.block >= program.blocks.size())
      return fail(place, "no block " + number(run.block));
    if (run.microbatch < 0 || run.microbatch > INT32_MAX || run.version < 0 || run.version > INT32_MAX)
      return fail(place, "microbatch or version is not in [0, 2^31)");
    expanded += program.blocks[run.block].instructions.size();
    if (expanded > maxExpanded)
      return fail(place, "the entry expands to more than 2^24 instructions");
  }
  return {};
}

Status Checker::tables() const {
  if (program.queues.empty() || program.queues.size() > maxQueues)
    return fail("queues", number(program.queues.size()) + " queues, expected 1 to " + number(maxQueues));
  if (program.arena.state > maxBytes || program.arena.pool > maxBytes || program.arena.host > maxBytes)
    return fail("arena", "more than 2^47 bytes");
  for (const Status &status :
       {unique(program.queues, "queues"), unique(program.buffers, "buffers"), unique(program.kernels, "kernels"),
        unique(program.calls, "calls"), unique(program.comms, "comms"), unique(program.events, "events"),
        unique(program.blocks, "blocks"), unique(program.entries, "entries")})
    if (!status)
      return status;
  for (const Buffer &it : program.buffers)
    if (Status status = buffer(it); !status)
      return status;
  for (const Call &it : program.calls)
    if (Status status = call(it); !status)
      return status;
  for (const Kernel &it : program.kernels)
    for (const Status &status : {launch(it), dependences(it)})
      if (!status)
        return status;
  for (const Comm &it : program.comms)
    if (it.queue >= program.queues.size())
      return fail("comms." + it.name, "no queue " + number(it.queue));
  for (const Event &it : program.events)
    if (it.depth < 1 || it.depth > (1u << 20) || (it.index == Index::None && it.depth != 1))
      return fail("events." + it.name, "a depth of " + number(it.depth) + " does not fit its index");
  for (const Entry &it : program.entries)
    if (Status status = entry(it); !status)
      return status;
  return {};
}
