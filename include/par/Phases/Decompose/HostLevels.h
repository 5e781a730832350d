#pragma once

#include "par/Costs/CostTable.h"
#include "par/Dialect/StageGroups.h"

#include <map>

namespace par {

/// The axes of a group that spans several hosts with several ranks on each, in two parts. Members that differ only in
/// `within`, the minor axes, are on one host.
struct HostLevels {
  llvm::SmallVector<mlir::StringAttr> between, within;
  int64_t hosts = 1; ///< members over `between`
  int64_t each = 1;  ///< members over `within`
};

/// Groups of the stages of a module: a layer asks for those that the layer before it asked for, and a group has a rank
/// for each member.
class StageGroups {
public:
  explicit StageGroups(const CostTable &costs) : costs(costs) {}
  /// The group on most hosts, of the groups that the axes form on the stage.
  RankGroup widest(StageOp stage, llvm::ArrayRef<mlir::StringAttr> axes);

  const CostTable &costs;

private:
  std::map<std::pair<mlir::Operation *, std::vector<const void *>>, RankGroup> known;
};

/// Nothing if the group is on one host, or if no part of its axes stays on one.
std::optional<HostLevels> findHostLevels(StageOp stage, llvm::ArrayRef<mlir::StringAttr> axes, StageGroups &groups);

/// ns of a collective of `bytes` (of the instruction's n, all values of a bucket) in two levels.
int64_t leveledTime(format::CollKind kind, int64_t bytes, StageOp stage, const HostLevels &levels, StageGroups &groups);

} // namespace par
