// Checks generated code against the interpreter.
#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par {

struct KernelCheckOptions {
  uint64_t seed = 1;
  /// Maximum number of elements that a kernel computes, over all ops of its body; larger kernels are checked for
  /// addresses only. The limit for a kernel of a GPU, whose threads are emulated, is a part of that; above it the
  /// kernel is not run.
  int64_t maxElements = int64_t(1) << 24;
};

/// Number of different kernels checked, and how many of them are too large.
struct KernelCheckCounts {
  unsigned kernels = 0;
  unsigned addressesOnly = 0; ///< run, but not interpreted
  unsigned notRun = 0;        ///< threads of a GPU, too many to emulate
  uint64_t elements = 0;      ///< of results, as far as they were compared
  /// Processor for which the code was compiled here, if it is another one than the bundle's; else empty.
  std::string otherIsa;
};

/// Runs each different generated kernel of the module, as `compiled` from it, on random operands and compares the
/// results with those of the interpreter on its body. Operands are next to pages without access, once at the end of one
/// and once at the begin of the next, and the code runs in a process of its own: a read or a write out of bounds is an
/// error. Code for a GPU, compiled with keepIR, is optimised LLVM IR that runs here, one thread at a time. Every error
/// is reported at the op with the wrong result.
llvm::LogicalResult checkKernels(mlir::ModuleOp module, const CompiledKernels &compiled,
                                 const KernelCheckOptions &options, KernelCheckCounts &counts);

} // namespace par
