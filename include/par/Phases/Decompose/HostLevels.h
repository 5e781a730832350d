#pragma once

#include "par/Base/Hardware.h"
#include "par/Dialect/Par.h"

namespace par {

/// The axes of a group whose ranks are several on each of several hosts, in two parts. Members that differ in `within`
/// alone, the minor axes, are on one host.
struct HostLevels {
  llvm::SmallVector<mlir::StringAttr> between, within;
  int64_t hosts = 1; ///< members over `between`
  int64_t each = 1;  ///< members over `within`
};

/// Of the groups that the axes make on the stage, the one on most hosts.
RankGroup widestGroup(StageOp stage, llvm::ArrayRef<mlir::StringAttr> axes, const Hardware &hardware);

/// Nothing where the group is on one host, or no part of its axes stays on one.
std::optional<HostLevels> findHostLevels(StageOp stage, llvm::ArrayRef<mlir::StringAttr> axes,
                                         const Hardware &hardware);

/// ns of a collective of `bytes` (of the instruction's n, all values of a bucket) in two levels.
int64_t leveledTime(format::CollKind kind, int64_t bytes, StageOp stage, const HostLevels &levels,
                    const Hardware &hardware);

} // namespace par
