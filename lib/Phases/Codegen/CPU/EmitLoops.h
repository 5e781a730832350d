#pragma once

#include "../KernelPlan.h"

namespace par::cpu {

using codegen::KernelBuffers;
using codegen::KernelPlan;

/// Builds, beside `function`, what computes it: an exported function `symbol` with the kernel ABI and a
/// private one with a pointer an operand, none of which overlap.
void emitLoops(mlir::func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
               llvm::StringRef symbol);

} // namespace par::cpu
