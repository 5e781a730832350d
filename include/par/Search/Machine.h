// The hardware that candidates are judged for.
#pragma once

#include "par/Costs/CostTable.h"

#include <map>
#include <tuple>

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

  /// Whether measured rows change a collective of replicas, of some size: a size may then take less than a smaller one,
  /// or two messages less than one of both. A row reaches each size within a doubling of its own.
  bool isMeasured(format::CollKind kind, int64_t data, int64_t tensor) const {
    auto [place, fresh] = measured.try_emplace({kind, data, tensor}, false);
    constexpr int maxDoublings = 50;
    for (int doublings = 0; fresh && !place->second && doublings <= maxDoublings; ++doublings)
      place->second =
          costs.collective(kind, int64_t(1) << doublings, replicas(data, tensor)).source != CostSource::Peak;
    return place->second;
  }

  const CostTable costs;

private:
  mutable std::map<std::tuple<format::CollKind, int64_t, int64_t>, bool> measured; ///< by kind, data and tensor
  mutable std::map<std::pair<int64_t, int64_t>, RankGroup> groups; ///< by data and tensor; one thread asks
};

} // namespace par
