#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The number of a splat: floats as doubles, integers as signed ones, a boolean as 0 or 1.
double numberOf(mlir::SplatElementsAttr splat);

/// The number that all elements of a value have, if that is known from a constant: looks through broadcasts, reshapes
/// and float conversions. Integers and booleans (0 or 1) too.
std::optional<double> readSplat(mlir::Value value);

} // namespace par
