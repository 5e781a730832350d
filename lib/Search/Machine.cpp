// Collectives of replicas as Collectives lowers them: in one level, or within hosts and between them.
#include "par/Search/Machine.h"

#include "par/Costs/TwoLevels.h"

#include <algorithm>

namespace par {

using format::CollKind;

const Machine::Groups &Machine::replicaGroups(const Candidate &candidate) const {
  auto [place, isNew] = groups.try_emplace({candidate.data, candidate.dataStride()});
  Groups &out = place->second;
  if (!isNew)
    return out;
  auto groupOf = [&](int64_t step, int64_t count) {
    std::vector<int64_t> ranks;
    for (int64_t replica = 0; replica < count; ++replica)
      ranks.push_back(replica * step * candidate.dataStride());
    return hardware().groupOf(ranks);
  };
  out.all = groupOf(1, candidate.data);
  for (int64_t each = 2; out.all.hosts > 1 && each < candidate.data; ++each)
    if (candidate.data % each == 0 && groupOf(1, each).hosts == 1)
      out.levels.push_back({each, groupOf(each, candidate.data / each)});
  return out;
}

int64_t Machine::collectiveNs(CollKind kind, int64_t bytes, const Candidate &candidate) const {
  const Groups &of = replicaGroups(candidate);
  int64_t least = costs.collective(kind, bytes, of.all).ns;
  for (const auto &[each, between] : of.levels)
    least = std::min(least, twoLevelNs(kind, bytes, each, between, costs));
  return least;
}

int64_t Machine::collectiveLatency(CollKind kind, const Candidate &candidate) const {
  const Groups &of = replicaGroups(candidate);
  int64_t least = costs.collectiveLatency(kind, of.all);
  for (const auto &[each, between] : of.levels) // a reduction in two levels scatters and gathers within hosts
    least = std::min(least, costs.collectiveLatency(kind, between) + costs.collectiveLatency(kind, each));
  return least;
}

bool Machine::isMeasured(CollKind kind, const RankGroup &group) const {
  constexpr int maxDoublings = 50;
  for (int doublings = 0; doublings <= maxDoublings; ++doublings)
    if (costs.collective(kind, int64_t(1) << doublings, group).source != CostSource::Peak)
      return true;
  return false;
}

bool Machine::isMeasured(CollKind kind, const Candidate &candidate) const {
  auto [place, isNew] = measured.try_emplace({kind, candidate.data, candidate.dataStride()}, false);
  if (!isNew)
    return place->second;
  const Groups &of = replicaGroups(candidate);
  bool found = isMeasured(kind, of.all);
  for (const auto &[each, between] : of.levels) {
    found |= isMeasured(kind, between) || isMeasured(kind, RankGroup(each));
    if (kind == CollKind::AllReduce)
      found |= isMeasured(CollKind::ReduceScatter, RankGroup(each)) || isMeasured(CollKind::AllGather, RankGroup(each));
  }
  return place->second = found;
}

} // namespace par
