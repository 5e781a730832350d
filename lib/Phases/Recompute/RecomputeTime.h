#pragma once

#include "par/Base/Hardware.h"
#include "par/Dialect/Par.h"

namespace par {

/// ns of an op of a local fragment on one rank: a collective by its group; an op that fuses only computes, all others
/// move their bytes too.
int64_t timeOf(mlir::Operation *op, const Hardware &hardware);
int64_t timeOf(FragmentOp fragment, const Hardware &hardware);

} // namespace par
