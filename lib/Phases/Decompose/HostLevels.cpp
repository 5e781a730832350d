#include "par/Phases/Decompose/HostLevels.h"

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
  using enum format::CollKind;
  const CostTable &costs = groups.costs;
  RankGroup between = groups.widest(stage, levels.between);
  int64_t launches = costs.launch();
  if (kind == AllReduce)
    return 2 * launches + costs.collective(ReduceScatter, bytes / levels.each, levels.each).ns +
           costs.collective(AllReduce, bytes / levels.each, between).ns +
           costs.collective(AllGather, bytes / levels.each, levels.each).ns;
  // Each shard crosses between hosts once, then all hosts' shards are gathered within a host.
  return launches + costs.collective(kind, bytes, between).ns +
         costs.collective(kind, bytes * levels.hosts, levels.each).ns;
}

} // namespace par
