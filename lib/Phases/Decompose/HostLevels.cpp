#include "par/Phases/Decompose/HostLevels.h"
#include "par/Costs/TwoLevels.h"

using namespace mlir;

namespace par {

RankGroup StageGroups::widest(StageOp stage, ArrayRef<StringAttr> axes) {
  std::vector<const void *> names;
  for (StringAttr axis : axes)
    names.push_back(axis.getAsOpaquePointer());
  auto [place, fresh] = known.try_emplace({stage, std::move(names)});
  if (fresh)
    place->second = widestGroup(stage, axes, costs.hardware());
  return place->second;
}

std::optional<HostLevels> findHostLevels(StageOp stage, ArrayRef<StringAttr> axes, StageGroups &groups) {
  // The last axis is the minor one of the members' order. Members of a host are consecutive only in the mesh's order.
  auto placeOf = [&](StringAttr axis) { return llvm::find(stage.getMesh().getNames(), axis); };
  bool inOrder = llvm::is_sorted(axes, [&](StringAttr a, StringAttr b) { return placeOf(a) < placeOf(b); });
  if (!inOrder || groups.widest(stage, axes).hosts == 1)
    return std::nullopt;
  size_t minor = 0;
  while (groups.widest(stage, axes.take_back(minor + 1)).hosts == 1)
    ++minor;
  HostLevels levels;
  levels.within.assign(axes.take_back(minor).begin(), axes.end());
  levels.between.assign(axes.begin(), axes.drop_back(minor).end());
  levels.each = stage.getMesh().getSize(levels.within);
  levels.hosts = stage.getMesh().getSize(levels.between);
  return minor ? std::optional(levels) : std::nullopt;
}

int64_t leveledTime(format::CollKind kind, int64_t bytes, StageOp stage, const HostLevels &levels,
                    StageGroups &groups) {
  int64_t more = kind == format::CollKind::AllReduce ? 2 : 1; // launches than of one collective
  return more * groups.costs.launch() +
         twoLevelNs(kind, bytes, levels.each, groups.widest(stage, levels.between), groups.costs);
}

} // namespace par
