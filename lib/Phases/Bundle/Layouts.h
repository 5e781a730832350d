#pragma once

#include "par/Dialect/Par.h"
#include "par/format/Manifest.h"

namespace par {

/// The format's word for an element type.
format::DType dtypeOf(mlir::Type elementType);
std::vector<int64_t> shapeOf(mlir::RankedTensorType type);

/// Which rectangle every rank of a stage holds of a value with this type.
format::Layout layoutOf(DistType dist, StageOp stage);

/// Adds the parts of another stage's layout. False, and nothing done, if the two do not fit in one table:
/// other local shape, or rectangles that overlap without being equal.
bool mergeLayout(format::Layout &layout, const format::Layout &other);

} // namespace par
