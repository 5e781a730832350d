// The types and shapes of tensors, as the files beside the ops ask for them.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace par {

inline mlir::RankedTensorType typeOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }

inline mlir::RankedTensorType resultType(mlir::Operation *op, unsigned index = 0) {
  return typeOf(op->getResult(index));
}

} // namespace par
