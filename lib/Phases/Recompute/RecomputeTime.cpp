// The time of single ops, by which values to recompute are chosen.
#include "RecomputeTime.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Timed.h"

using namespace mlir;

namespace par {

int64_t timeInFragment(Operation *op, const CostTable &costs) {
  OpCost work = getCost(op);
  return work.fusable && !isa<CollectiveOpInterface>(op) ? costs.operations(work.flops) : timeOf(op, costs).ns;
}

int64_t timeOfFragment(FragmentOp fragment, const CostTable &costs) {
  int64_t time = 0;
  for (Operation &op : fragment.getBlock().without_terminator())
    time += timeInFragment(&op, costs);
  return time;
}

} // namespace par
