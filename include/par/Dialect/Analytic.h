#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// True for elementwise ops of floats that are analytic where they are defined: two compositions of such ops that agree
/// on an interval agree wherever both can be continued. Functions in pieces (the larger of two, absolute values,
/// roundings, selections) are not: what they are elsewhere cannot be told from an interval.
bool isAnalytic(mlir::Operation *op);

} // namespace par
