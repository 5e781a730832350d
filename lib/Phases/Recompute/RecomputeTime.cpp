// The time of single ops, by which values to recompute are chosen.
#include "RecomputeTime.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Timed.h"

using namespace mlir;

namespace par {

int64_t timeInKernels(Operation *op, const CostTable &costs) {
  OpCost cost = getCost(op);
  return cost.fusable && !isa<TimedOpInterface>(op) ? costs.operations(cost.flops) : timeOf(op, costs).ns;
}

int64_t timeInKernels(FragmentOp fragment, const CostTable &costs) {
  int64_t time = 0;
  for (Operation &op : fragment.getBlock().without_terminator())
    time += timeInKernels(&op, costs);
  return time;
}

} // namespace par
