// Chooses neighbours by hosts, and mirrored parts by layouts.
#include "MirrorPlan.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace par::core {

namespace {

/// Other ranks that hold the same bytes of a part.
std::vector<uint32_t> replicasOf(const KeptPart &part, uint32_t rank) {
  const format::Rectangle *held = format::rectangleOf(part.tensor->layout, rank);
  std::vector<uint32_t> others = held ? held->ranks : std::vector<uint32_t>();
  std::erase(others, rank);
  return others;
}

/// Whether some part has replicas, and none on another host.
bool losesReplicas(const std::vector<KeptPart> &parts, uint32_t rank, const std::vector<uint32_t> &hostOf) {
  return std::any_of(parts.begin(), parts.end(), [&](const KeptPart &part) {
    std::vector<uint32_t> others = replicasOf(part, rank);
    return !others.empty() &&
           std::all_of(others.begin(), others.end(), [&](uint32_t other) { return hostOf[other] == hostOf[rank]; });
  });
}

} // namespace

std::vector<MirrorRange> mirrorRanges(const format::Bundle &bundle, uint32_t rank, bool whole) {
  std::vector<MirrorRange> ranges;
  for (const KeptPart &part : keptParts(bundle, rank))
    if (whole || replicasOf(part, rank).empty())
      ranges.push_back({part.at, part.bytes});
  return ranges;
}

uint64_t bytesOf(const std::vector<MirrorRange> &ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), uint64_t(0),
                         [](uint64_t sum, const MirrorRange &range) { return sum + range.bytes; });
}

std::optional<uint64_t> placeInMirror(const std::vector<MirrorRange> &ranges, const KeptPart &part) {
  uint64_t place = 0;
  for (const MirrorRange &range : ranges) {
    if (range.at == part.at && range.bytes == part.bytes)
      return place;
    place += range.bytes;
  }
  return std::nullopt;
}

// In the order of hosts, the rank as many places on as the largest host has ranks is on another one.
MirrorPlan::MirrorPlan(const format::Bundle &bundle, const std::vector<uint32_t> &hostOf) : next(hostOf.size()) {
  std::vector<uint32_t> order(hostOf.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return hostOf[a] < hostOf[b]; });
  bool several = std::set<uint32_t>(hostOf.begin(), hostOf.end()).size() > 1;
  int64_t most = 1;
  for (uint32_t host : hostOf)
    most = several ? std::max<int64_t>(most, std::count(hostOf.begin(), hostOf.end(), host)) : 1;
  for (size_t i = 0; i < order.size(); ++i)
    next[order[i]] = order[(i + static_cast<size_t>(most)) % order.size()];
  for (uint32_t rank = 0; rank < hostOf.size(); ++rank)
    isWhole.push_back(several && losesReplicas(keptParts(bundle, rank), rank, hostOf));
}

uint32_t MirrorPlan::mirroredBy(uint32_t rank) const {
  return static_cast<uint32_t>(std::find(next.begin(), next.end(), rank) - next.begin());
}

} // namespace par::core
