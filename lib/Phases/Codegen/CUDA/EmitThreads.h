#pragma once

#include "LaunchPlan.h"

namespace par::cuda {

/// Builds, beside `function`, the kernel `symbol` that computes it under `launch`: a pointer an operand, none
/// of which overlap, then an i64 an immediate.
void emitThreads(mlir::func::FuncOp function, const codegen::KernelPlan &plan, const LaunchPlan &launch,
                 const codegen::KernelBuffers &buffers, llvm::StringRef symbol);

} // namespace par::cuda
