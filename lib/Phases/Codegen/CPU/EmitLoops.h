#pragma once

#include "../KernelPlan.h"

namespace par::cpu {

using codegen::KernelBuffers;
using codegen::KernelPlan;

/// Builds the code of `function` next to it: an exported function `symbol` with the kernel ABI, and a private one with
/// one pointer an operand, none of which alias.
void emitLoops(mlir::func::FuncOp function, const KernelPlan &plan, const KernelBuffers &buffers,
               llvm::StringRef symbol);

} // namespace par::cpu
