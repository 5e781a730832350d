#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"

namespace par {

/// Indices of a dim sharded over `axes` into shards of `shard`, relative to this shard: those of other shards become 0,
/// and `here` is false for them.
struct ShiftedIndices {
  ShiftedIndices(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value indices,
                 llvm::ArrayRef<mlir::StringAttr> axes, int64_t shard);

  mlir::Value local, here;
};

} // namespace par
