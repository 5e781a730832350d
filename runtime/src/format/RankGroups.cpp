#include "par/format/RankGroups.h"

#include <algorithm>

using namespace par::format;

RankGroups::RankGroups(Lists lists) : groups(std::move(lists)) {
  for (uint32_t group = 0; group < groups.size(); ++group)
    for (uint32_t member = 0; member < groups[group].size(); ++member)
      places.push_back({groups[group][member], {group, member}});
  std::ranges::stable_sort(places, {}, &Place::rank);
}

std::optional<Membership> RankGroups::find(uint32_t rank) const {
  auto place = std::ranges::lower_bound(places, rank, {}, &Place::rank);
  if (place == places.end() || place->rank != rank)
    return std::nullopt;
  return place->membership;
}
