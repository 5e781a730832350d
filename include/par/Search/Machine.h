// The hardware that candidates are judged for.
#pragma once

#include "par/Costs/CostTable.h"

#include <map>

namespace par {

/// Costs, and the groups that replicas make: they depend on a candidate's degrees only, and have up to all ranks.
class Machine {
public:
  explicit Machine(const Hardware &hardware) : costs(hardware) {}

  const Hardware &hardware() const { return costs.hardware(); }
  /// So many ranks that hold the same part of the model: the tensor axis lies within.
  const RankGroup &replicas(int64_t data, int64_t tensor) const {
    auto [place, fresh] = groups.try_emplace({data, tensor});
    if (fresh) {
      std::vector<int64_t> ranks;
      for (int64_t replica = 0; replica < data; ++replica)
        ranks.push_back(replica * tensor);
      place->second = hardware().groupOf(ranks);
    }
    return place->second;
  }

  const CostTable costs;

private:
  mutable std::map<std::pair<int64_t, int64_t>, RankGroup> groups; ///< by data and tensor; one thread asks
};

} // namespace par
