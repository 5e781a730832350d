#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace par {

/// Adds the only step of `from`, another import of the same model, to `into` as @`name`, with inputs and outputs called
/// NAME.INPUT and NAME.OUTPUT. Variables of both are one; constants that differ are two.
mlir::LogicalResult addEntry(mlir::ModuleOp into, mlir::ModuleOp from, llvm::StringRef name);

} // namespace par
