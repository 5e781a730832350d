#pragma once

#include "par/Phases/Codegen/Codegen.h"

#include <functional>

namespace par::kernel_check {

/// A shared object of kernels, in this process: CompiledKernels::object, or the result of emulateKernels.
class LoadedCode {
public:
  /// A kernel's tiles [first, last) on its operands and immediates; of a GPU all of it. False where threads wait for
  /// ever.
  using Tiles = std::function<bool(void *const *, const uint64_t *, uint32_t, uint32_t)>;

  /// If it cannot be loaded, `error` has the reason.
  LoadedCode(llvm::StringRef object, std::string &error);
  ~LoadedCode();
  LoadedCode(const LoadedCode &) = delete;
  LoadedCode &operator=(const LoadedCode &) = delete;
  explicit operator bool() const { return handle; }

  /// Empty where the object has no such symbol.
  Tiles find(const KernelInfo &info) const;

private:
  /// Open as long as the object is loaded: the loader takes two files of one name for one, and the name is that of the
  /// number.
  int file = -1;
  void *handle = nullptr;
};

} // namespace par::kernel_check
