#pragma once

#include "par/Costs/CostTable.h"
#include "par/Dialect/Par.h"

namespace par {

/// ns of an op of a local fragment on one rank: a collective by its group; an op that fuses only computes, all others
/// move their bytes too.
int64_t timeInFragment(mlir::Operation *op, const CostTable &costs);
int64_t timeOfFragment(FragmentOp fragment, const CostTable &costs);

} // namespace par
