#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// True for elementwise ops of floats that are analytic on their domain: two compositions of such ops that agree on an
/// interval agree wherever both can be continued. Piecewise functions (maximum, absolute value, rounding, select) are
/// not: an interval does not determine their values elsewhere.
bool isAnalytic(mlir::Operation *op);

} // namespace par
