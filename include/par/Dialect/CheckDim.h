// Type inference's check of an op's `dim`.
#pragma once

#include "mlir/IR/Diagnostics.h"

namespace par {

/// Fails unless `dim` is in [0, rank) of the op's operand; emits an error if there is a location.
inline mlir::LogicalResult checkDim(std::optional<mlir::Location> loc, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return mlir::emitOptionalError(loc, "dim is ", dim, ", the operand has rank ", rank);
  return mlir::success();
}

} // namespace par
