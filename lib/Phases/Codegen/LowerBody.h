#pragma once

#include "par/Phases/Codegen/Codegen.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace par {

/// The dialects of a lowered kernel.
void loadLoweringDialects(mlir::MLIRContext &context);

/// The constants of a kernel that its code takes as immediates, in order: scalars that are too large for sizes and
/// indices, as the keys of random numbers are.
llvm::SmallVector<ConstantOp> keysOf(KernelOp kernel);
int64_t valueOfKey(ConstantOp key);

/// A kernel's body as linalg on tensors in a function of `module` (the kernel's name): arguments are the
/// kernel's, then one i64 for every immediate. Composites are taken apart. Fails at an op that has no
/// lowering.
mlir::FailureOr<mlir::func::FuncOp> lowerBody(KernelOp kernel, mlir::ModuleOp module,
                                              std::vector<ImmediateInfo> &immediates);

} // namespace par
