// Kernels for a GPU, made to run on this machine.
#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par {

/// What the code of an emulated thread calls instead of the GPU's intrinsics.
struct EmulatedCalls {
  int32_t (*thread)();
  int32_t (*block)();
  void (*syncWarp)();
  void (*syncBlock)();
  int32_t (*exchange)(int32_t value, int32_t mask);
};

/// A shared object for this machine of what kernels for a GPU are behind LLVM's optimisation for it:
/// CompiledKernels::ir. Of each it has SYMBOL, void(void *const *pointers, const uint64_t *immediates), which does what
/// one thread does; SYMBOL.calls, an EmulatedCalls that who loads the object fills; and, where the threads of a block
/// share memory, that memory, SYMBOL.shared, and the number of its bytes, SYMBOL.shared.bytes. Fails, with the reason,
/// at an intrinsic that is not known here.
llvm::FailureOr<std::string> emulateKernels(const llvm::StringMap<std::string> &ir, std::string &error);

} // namespace par
