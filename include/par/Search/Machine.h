// The hardware that candidates are judged for.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/Search/Candidate.h"

#include <map>
#include <tuple>

namespace par {

/// Costs, and the groups that replicas make: they depend on a candidate's degrees only, and have up to all ranks.
class Machine {
public:
  explicit Machine(const Hardware &hardware) : costs(hardware) {}

  const Hardware &hardware() const { return costs.hardware(); }
  /// The ranks that hold the same part of the model.
  const RankGroup &replicas(const Candidate &candidate) const {
    auto [place, fresh] = groups.try_emplace({candidate.data, candidate.dataStride()});
    if (fresh) {
      std::vector<int64_t> ranks;
      for (int64_t replica = 0; replica < candidate.data; ++replica)
        ranks.push_back(replica * candidate.dataStride());
      place->second = hardware().groupOf(ranks);
    }
    return place->second;
  }

  /// Whether measured rows change a collective of replicas, of some size: a size may then take less than a smaller one,
  /// or two messages less than one of both. A row reaches each size within a doubling of its own.
  bool isMeasured(format::CollKind kind, const Candidate &candidate) const {
    auto [place, fresh] = measured.try_emplace({kind, candidate.data, candidate.dataStride()}, false);
    constexpr int maxDoublings = 50;
    for (int doublings = 0; fresh && !place->second && doublings <= maxDoublings; ++doublings)
      place->second = costs.collective(kind, int64_t(1) << doublings, replicas(candidate)).source != CostSource::Peak;
    return place->second;
  }

  const CostTable costs;

private:
  mutable std::map<std::tuple<format::CollKind, int64_t, int64_t>, bool> measured; ///< by kind, data and stride
  mutable std::map<std::pair<int64_t, int64_t>, RankGroup> groups; ///< by data and stride; one thread asks
};

} // namespace par
