// The time of single ops, by which values to recompute are chosen.
#include "RecomputeTime.h"

#include "par/Base/TypeSize.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Interfaces/Timed.h"

using namespace mlir;

namespace par {

/// A collective's kind, and the bytes of its instruction for all values together; nothing if it has no such cost.
static std::optional<std::pair<format::CollKind, int64_t>> sizeOf(Operation *op, int64_t operands, int64_t results) {
  if (isa<AllReduceOp>(op))
    return std::pair(format::CollKind::AllReduce, operands);
  if (isa<AllGatherOp>(op))
    return std::pair(format::CollKind::AllGather, operands);
  if (isa<ReduceScatterOp>(op))
    return std::pair(format::CollKind::ReduceScatter, results);
  if (isa<AllToAllOp>(op))
    return std::pair(format::CollKind::AllToAll, operands);
  return std::nullopt;
}

/// The ranks of the first group of a collective.
static SmallVector<int64_t> membersOf(CollectiveOpInterface collective) {
  auto fragment = collective->getParentOfType<FragmentOp>();
  auto stage = SymbolTable::lookupNearestSymbolFrom<StageOp>(fragment, fragment.getStageAttr());
  SmallVector<int64_t> members = stage.getMesh().getGroups(getAxes(collective.getAxes())).front();
  for (int64_t &member : members)
    member = stage.getRanks()[member];
  return members;
}

int64_t timeInFragment(Operation *op, const CostTable &costs) {
  int64_t operands = getByteSize(ValueRange(op->getOperands())), results = getByteSize(ValueRange(op->getResults()));
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    if (auto size = sizeOf(op, operands, results)) {
      auto [kind, bytes] = *size;
      SmallVector<int64_t> members = membersOf(collective);
      if (kind == format::CollKind::AllToAll)
        bytes /= members.size();
      return costs.collective(kind, bytes, costs.hardware().groupOf(members)).ns;
    }
  OpCost work = getCost(op);
  return work.fusable ? costs.operations(work.flops) : timeOf(op, costs).ns;
}

int64_t timeOfFragment(FragmentOp fragment, const CostTable &costs) {
  int64_t time = 0;
  for (Operation &op : fragment.getBlock().without_terminator())
    time += timeInFragment(&op, costs);
  return time;
}

} // namespace par
