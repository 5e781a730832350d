#pragma once

#include "par/Costs/CostTable.h"
#include "par/Dialect/Par.h"

#include "par/Dialect/Interfaces/Timed.h.inc"

namespace par {

/// The format of a tensor's elements in matmuls.
format::DType formatOf(mlir::Type tensor);

/// The shape of a matmul's local operands.
MatmulShape shapeOf(DotOp dot);

/// The time of an op by itself: a library call by its shape, any other as a kernel that moves its operands and results.
Cost timeOf(mlir::Operation *op, const CostTable &costs);

} // namespace par
