// The time of ops as the kernels and calls that they become.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/Dialect/Par.h"

namespace par {

/// ns of a block's ops, run one after the other. Library calls and collectives count by themselves. All others form
/// kernels: an op joins the one that makes its operand, unless a call or a collective lies between, or the operand is a
/// reduction's. A kernel has its ops' operations, and moves what enters and leaves it; ops that only rename or repeat
/// elements are read in place by what follows.
int64_t timeOfBlock(mlir::Block &block, const CostTable &costs);

} // namespace par
