// Collectives in two levels, as sums of those of each level.
#include "par/Costs/TwoLevels.h"

int64_t par::twoLevelNs(format::CollKind kind, int64_t bytes, int64_t each, const RankGroup &between,
                        const CostTable &costs) {
  using enum format::CollKind;
  if (kind == AllReduce)
    return costs.collective(ReduceScatter, bytes / each, each).ns +
           costs.collective(AllReduce, bytes / each, between).ns + costs.collective(AllGather, bytes / each, each).ns;
  return costs.collective(kind, bytes, between).ns + costs.collective(kind, bytes * between.members, each).ns;
}
