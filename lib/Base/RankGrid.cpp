// How the groups that some axes of a grid of ranks form lie on hosts and wider units, without looking at each rank: in
// the usual case all lie alike.
#include "par/Base/RankGrid.h"

#include "llvm/ADT/STLExtras.h"

using namespace par;

std::optional<RankGrid> RankGrid::find(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> ranks) {
  RankGrid grid;
  grid.first = ranks.front();
  int64_t places = 1; // from one coordinate of the axis to the next
  for (int64_t size : llvm::reverse(sizes)) {
    grid.axes.push_back({size, size > 1 ? ranks[places] - ranks.front() : 0});
    places *= size;
  }
  std::reverse(grid.axes.begin(), grid.axes.end());
  // Each block of an inner axis is the first block, moved by the axis's step.
  places = 1;
  for (const Axis &axis : llvm::reverse(grid.axes)) {
    for (int64_t place = places; place < places * axis.size; ++place)
      if (ranks[place] != ranks[place - places] + axis.step)
        return std::nullopt;
    places *= axis.size;
  }
  return grid;
}

/// Groups by units of so many ranks; nothing where they may lie differently. `members`: of a group.
std::optional<RankGroup::Units> RankGrid::unitsOf(int64_t unit, llvm::ArrayRef<unsigned> chosen,
                                                  int64_t members) const {
  std::vector<unsigned> order;
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    if (axes[axis].size > 1)
      order.push_back(axis);
  llvm::sort(order, [&](unsigned a, unsigned b) { return axes[a].step < axes[b].step; });
  int64_t ranks = 1, within = 1; // within: members of a unit
  for (unsigned axis : order) {
    const auto &[size, step] = axes[axis];
    if (step != ranks) // the grid has holes
      return std::nullopt;
    ranks *= size;
  }
  if (unit >= ranks)
    return unit % ranks == 0 && first % ranks == 0 ? std::optional(RankGroup::Units{1, members}) : std::nullopt;
  if (first % unit != 0)
    return std::nullopt;
  for (unsigned axis : order) {
    int64_t size = axes[axis].size, own = std::min(unit, size);
    if (unit % own != 0 || size % own != 0)
      return std::nullopt;
    unit /= own;
    if (llvm::is_contained(chosen, axis))
      within *= own;
  }
  return RankGroup::Units{members / within, within};
}

std::optional<RankGroup> RankGrid::groupOf(llvm::ArrayRef<unsigned> chosen, const Hardware &hardware) const {
  int64_t members = 1;
  for (unsigned axis : chosen)
    members *= axes[axis].size;
  RankGroup group(members);
  if (hardware.hasHosts() && hardware.ranks) {
    std::optional<RankGroup::Units> hosts = unitsOf(hardware.ranks, chosen, members);
    if (!hosts)
      return std::nullopt;
    group.hosts = hosts->count;
    group.fewest = hosts->fewest;
  }
  for (auto [level, link] : llvm::enumerate(hardware.wider)) {
    std::optional<RankGroup::Units> units = unitsOf(link.ranks, chosen, members);
    if (!units)
      return std::nullopt;
    if (units->count > 1)
      group.wider[level] = *units;
  }
  return group;
}
