#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"

namespace par {

/// Indices of a dim cut over `axes` into shards of `shard`, as this shard counts: those that point elsewhere
/// become 0, and `here` says which do not.
struct ShiftedIndices {
  ShiftedIndices(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value indices,
                 llvm::ArrayRef<mlir::StringAttr> axes, int64_t shard);

  mlir::Value local, here;
};

} // namespace par
