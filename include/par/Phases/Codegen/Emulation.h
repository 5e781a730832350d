// Kernels for a GPU, made to run on this machine.
#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par {

/// Functions that an emulated thread calls instead of the GPU's intrinsics.
struct EmulatedCalls {
  int32_t (*thread)();
  int32_t (*block)();
  void (*syncWarp)();
  void (*syncBlock)();
  int32_t (*exchange)(int32_t value, int32_t mask);
};

/// A shared object for this machine of a GPU's kernels after LLVM's optimisation for it: CompiledKernels::ir. For each
/// kernel it has SYMBOL, void(void *const *pointers, const uint64_t *immediates), which runs one thread; SYMBOL.calls,
/// an EmulatedCalls that the loader of the object fills in; and, if the threads of a block share memory, that memory,
/// SYMBOL.shared, and its size, SYMBOL.shared.bytes. Fails, with the reason, at an intrinsic that is not supported
/// here.
llvm::FailureOr<std::string> emulateKernels(const llvm::StringMap<std::string> &ir, std::string &error);

} // namespace par
