#include "par/cuda/driver/Kernels.h"

#include "par/format/PlainFile.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/messages/Failure.h"

#include <algorithm>

namespace par::cuda {

using core::Failure;
using core::Message;

namespace {

/// A file's bytes, terminated by a zero as PTX text must be.
std::string readFile(const std::string &path) {
  auto bytes = format::readPlainFile(path);
  if (!bytes)
    throw Failure::at(path, Message::cannotOpen, bytes.message());
  return std::move(*bytes);
}

/// The image of the builtins: the runtime's own, or a file that the environment names (a runtime that was
/// built without nvcc can be given one).
std::string builtinImage() {
  if (const char *file = std::getenv("PAR_CUDA_BUILTINS"); file && *file)
    return readFile(file);
  std::span<const std::byte> image = kernels::cudaImage();
  if (image.empty())
    throw Failure::at("", Message::cudaNoBuiltins);
  return {reinterpret_cast<const char *>(image.data()), image.size()};
}

} // namespace

Kernels::Kernels(const Gpu &gpu, const core::DeviceOptions &options) : gpu(gpu), folder(options.folder) {
  const auto &table = options.program().kernels;
  if (std::all_of(table.begin(), table.end(), [](const format::Kernel &kernel) { return kernel.builtin; }))
    return;
  // A cubin that the manifest does not list is not part of the bundle.
  std::string file = "kernels-sm" + std::to_string(gpu.sm()) + ".cubin";
  if (!format::lists(options.bundle->manifest, file))
    file = "kernels.ptx";
  generated = load(options.listed(file), options.pathOf(file));
}

Owned<Module> Kernels::load(const std::string &image, const std::string &file) const {
  // CU_JIT_ERROR_LOG_BUFFER and its size: messages of the driver's PTX compiler.
  std::string log(4096, '\0');
  int names[] = {5, 6};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Module module = nullptr;
  Result result = gpu->moduleLoad(&module, image.c_str(), 2, names, values);
  if (result != success) {
    log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
    throw Failure::at(file, Message::cudaModule, gpu.name(), gpu.sm(), gpu->describe(result))
        .continued((log.empty() ? "" : ": ") + log);
  }
  return {gpu, module};
}

Function Kernels::functionOf(Module module, const std::string &entry, const std::string &kernel) const {
  Function function = nullptr;
  Result result = gpu->moduleFunction(&function, module, entry.c_str());
  if (result != success)
    throw Failure::at(folder, Message::noKernel, kernel, entry + ": " + gpu->describe(result));
  return function;
}

Function Kernels::builtin(std::string_view entry) {
  if (auto found = known.find(entry); found != known.end())
    return found->second;
  if (!builtins)
    builtins = load(builtinImage(), folder);
  return known.emplace(entry, functionOf(builtins, std::string(entry), std::string(entry))).first->second;
}

void Kernels::adopt(std::string_view builtin, std::vector<uint64_t> immediates,
                    std::unique_ptr<LibraryKernel> library) {
  libraries[{std::string(builtin), std::move(immediates)}] = std::move(library);
}

BoundKernel Kernels::bind(const format::Kernel &kernel, std::span<const uint64_t> immediates) {
  BoundKernel bound;
  if (!kernel.builtin) {
    auto shared = static_cast<uint32_t>(kernel.launch.shared);
    bound.stages[0] = {functionOf(generated, kernel.symbol, kernel.name), kernel.launch.grid, kernel.launch.block,
                       shared};
    if (shared > defaultShared)
      gpu->check(gpu->functionSet(bound.stages[0].function, functionSharedBytes, static_cast<int>(shared)),
                 "cuFuncSetAttribute of " + kernel.symbol);
    return bound;
  }
  auto adopted = libraries.find({kernel.symbol, {immediates.begin(), immediates.end()}});
  if (adopted != libraries.end()) {
    bound.library = adopted->second.get();
    bound.scratch = bound.library->workspace();
    return bound;
  }
  if (!kernels::findBuiltin(kernel.symbol))
    throw Failure::at(folder, Message::noBuiltin, kernel.name, kernel.symbol);
  std::optional<kernels::CudaLaunch> launch = kernels::cudaLaunch(kernel.symbol, immediates);
  if (!launch)
    throw Failure::at(folder, Message::unsupportedInstruction, "kernel \"" + kernel.name + "\"",
                      kernel.symbol + " on cuda");
  bound.count = launch->count;
  bound.scratch = launch->scratch;
  for (uint32_t i = 0; i < launch->count; ++i) {
    const kernels::CudaStage &stage = launch->storage[i];
    bound.stages[i] = {builtin(stage.entry), stage.grid, stage.block, stage.shared};
  }
  return bound;
}

void Kernels::launch(const BoundKernel &kernel, std::span<void *const> operands, std::span<const uint64_t> immediates,
                     void *scratch, Stream stream) const {
  if (kernel.library)
    return kernel.library->run(operands, scratch, stream);
  std::vector<void *> parameters;
  for (void *const &operand : operands)
    parameters.push_back(const_cast<void **>(&operand));
  if (kernel.scratch)
    parameters.push_back(&scratch);
  for (const uint64_t &immediate : immediates)
    parameters.push_back(const_cast<uint64_t *>(&immediate));
  for (uint32_t i = 0; i < kernel.count; ++i) {
    const BoundKernel::Stage &stage = kernel.stages[i];
    gpu->check(gpu->launch(stage.function, stage.grid[0], stage.grid[1], stage.grid[2], stage.block[0], stage.block[1],
                           stage.block[2], stage.shared, stream, parameters.data(), nullptr),
               "cuLaunchKernel");
  }
}

} // namespace par::cuda
