// Generated code held against the interpreter.
#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par {

struct KernelCheckOptions {
  uint64_t seed = 1;
  /// Elements that a kernel may compute, over all ops of its body: what has more is checked for addresses alone. A
  /// kernel for a GPU, whose threads are emulated, is not run above a part of that.
  int64_t maxElements = int64_t(1) << 24;
};

/// What was checked: kernels that are different, and how many of them are too large.
struct KernelCheckCounts {
  unsigned kernels = 0;
  unsigned addressesOnly = 0; ///< run, but not interpreted
  unsigned notRun = 0;        ///< threads of a GPU, too many to emulate
  uint64_t elements = 0;      ///< of results, as far as they were compared
  /// The processor that the code was made for here, where that is not what the bundle's was made for; empty: it is.
  std::string otherIsa;
};

/// Runs each different kernel of the module's generated ones, as `compiled` from it, on random operands and compares
/// what it computes with what the interpreter does of its body. Operands lie between pages that cannot be touched, once
/// at the end of one and once at the begin of the next, and the code runs in a process of its own: a read or a write
/// outside is an error. Code for a GPU, compiled with keepIR, is optimised LLVM IR that runs here, each thread by
/// itself. Every error is reported at the op that gives the wrong result.
llvm::LogicalResult checkKernels(mlir::ModuleOp module, const CompiledKernels &compiled,
                                 const KernelCheckOptions &options, KernelCheckCounts &counts);

} // namespace par
