// Kernels of a program on a GPU: generated ones of the bundle's files, builtins of the runtime's image.
#pragma once

#include "par/cuda/driver/Gpu.h"
#include "par/device/Device.h"

#include <array>
#include <map>
#include <memory>

namespace par::cuda {

/// A builtin that a library computes, with one set of immediates.
class LibraryKernel {
public:
  virtual ~LibraryKernel() = default;
  /// Bytes of the GPU that run() wants.
  virtual uint64_t workspace() const = 0;
  /// Operands in the builtin's order.
  virtual void run(std::span<void *const> operands, void *workspace, Stream stream) const = 0;
};

/// One kernel of a program with one set of immediates.
struct BoundKernel {
  struct Stage {
    Function function = nullptr;
    std::array<uint32_t, 3> grid{}, block{};
    uint32_t shared = 0;
  };
  std::array<Stage, 2> stages;
  uint32_t count = 1;
  uint64_t scratch = 0;                   ///< bytes; their pointer comes after the operands
  const LibraryKernel *library = nullptr; ///< runs instead of the stages
};

class Kernels {
public:
  /// Loads the bundle's kernels where the program has generated ones: the cubin for this GPU, else PTX.
  Kernels(const Gpu &gpu, const core::DeviceOptions &options);

  /// From now on a builtin with these immediates is a library's.
  void adopt(std::string_view builtin, std::vector<uint64_t> immediates, std::unique_ptr<LibraryKernel> library);
  /// Throws core::Failure for a builtin without a CUDA form, and for a symbol that is missing.
  BoundKernel bind(const format::Kernel &kernel, std::span<const uint64_t> immediates);
  /// A kernel of the runtime's image by its entry, for communication.
  Function builtin(std::string_view entry);
  void launch(const BoundKernel &kernel, std::span<void *const> operands, std::span<const uint64_t> immediates,
              void *scratch, Stream stream) const;

private:
  Owned<Module> load(const std::string &image, const std::string &file) const;
  Function functionOf(Module module, const std::string &entry, const std::string &kernel) const;

  const Gpu &gpu;
  std::string folder;
  Owned<Module> generated, builtins;
  std::map<std::string, Function, std::less<>> known; ///< builtins by entry
  std::map<std::pair<std::string, std::vector<uint64_t>>, std::unique_ptr<LibraryKernel>> libraries;
};

} // namespace par::cuda
