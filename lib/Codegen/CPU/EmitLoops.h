#ifndef PAR_LIB_CODEGEN_CPU_EMITLOOPS_H
#define PAR_LIB_CODEGEN_CPU_EMITLOOPS_H

#include "KernelPlan.h"

namespace par::cpu {

/// The buffers of a kernel: one for every argument and result; a tied result has its argument's.
struct KernelBuffers {
  /// Position in the ABI's `ptr` of each tensor argument and of each result.
  llvm::SmallVector<unsigned> arguments, results;
  /// Position of the scratch operand; -1 if there is none.
  int scratch = -1;
  unsigned count = 0;
};

/// Builds, beside `function`, what computes it: an exported function `symbol` with the kernel ABI and a
/// private one with a pointer an operand, none of which overlap.
void emitLoops(mlir::func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
               llvm::StringRef symbol);

/// Fails where a nest would read a tied argument after its storage has got the result.
mlir::LogicalResult checkTied(mlir::func::FuncOp function, const KernelPlan &plan,
                              const KernelBuffers &buffers);

/// Fails where a nest would read a tied argument after its storage has got the result.
mlir::LogicalResult checkTied(mlir::func::FuncOp function, const KernelPlan &plan,
                              const KernelBuffers &buffers);

} // namespace par::cpu

#endif
