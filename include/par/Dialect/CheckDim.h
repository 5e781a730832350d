// What type inference asks of an op's `dim`.
#pragma once

#include "mlir/IR/Diagnostics.h"

namespace par {

/// Fails, with an error where there is a location, unless `dim` is in [0, rank) of the op's operand.
inline mlir::LogicalResult checkDim(std::optional<mlir::Location> loc, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return mlir::emitOptionalError(loc, "dim is ", dim, ", the operand has rank ", rank);
  return mlir::success();
}

} // namespace par
