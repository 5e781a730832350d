#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The number of a splat: floats as doubles, integers as signed ones, a boolean as 0 or 1.
double numberOf(mlir::SplatElementsAttr splat);

/// The number that a value of a step has everywhere, where a constant says so: looked up through repetition, another
/// shape and another float format. Of integers and booleans (0 or 1) too.
std::optional<double> readSplat(mlir::Value value);

} // namespace par
