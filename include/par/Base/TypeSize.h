// Bytes of values as buffers hold them: dense, each element in whole bytes, a boolean in one.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ValueRange.h"

namespace par {

/// Bytes of one element.
inline uint64_t getElementBytes(mlir::Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

/// Bytes of a tensor; 0 for any other type.
inline int64_t getByteSize(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor ? tensor.getNumElements() * static_cast<int64_t>(getElementBytes(tensor.getElementType())) : 0;
}
inline int64_t getByteSize(mlir::Value value) { return getByteSize(value.getType()); }

/// Bytes of all values together.
inline int64_t getByteSize(mlir::ValueRange values) {
  int64_t bytes = 0;
  for (mlir::Value value : values)
    bytes += getByteSize(value);
  return bytes;
}

} // namespace par
