#ifndef PAR_PARTITION_RESHARD_H
#define PAR_PARTITION_RESHARD_H

#include "par/Interfaces/ShardingRule.h"

namespace par {

/// Builds, on shards, the change from one sharding to another on the same mesh, as the cheapest sequence of
/// collectives: a sum over an axis that the target has as the next axis of a dim is reduce-scattered, another
/// one all-reduced; an axis that ends one dim and is next in another moves by all-to-all; other axes are
/// gathered (minor first), and new ones sliced. A new sum over an axis is the value on the axis' first ranks
/// and zero elsewhere. `global` is the value's global type. Returns a value of the target's local type.
mlir::Value buildReshard(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value local,
                         mlir::RankedTensorType global, ShardingAttr from, ShardingAttr to, MeshAttr mesh);

/// Replaces the padding of an uneven dim by `neutral`, where the dim of global size `size` is cut over
/// `axes`.
mlir::Value buildMask(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value local, int64_t dim,
                      int64_t size, llvm::ArrayRef<mlir::StringAttr> axes, double neutral);

} // namespace par

#endif
