#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Solver/Reshard/ReshardPath.h"

#include <map>

namespace par {

/// Finds the cheapest path between shardings on a machine, each once.
class ReshardPaths {
public:
  /// `ranks` are those of the meshes in later calls; none: all on one host.
  explicit ReshardPaths(const CostTable &costs, llvm::ArrayRef<int64_t> ranks = {}) : table(costs), ranks(ranks) {}

  /// Axes of a path are numbered as the mesh has them. Sums that both shardings have stay out of it, and so
  /// do those that only `to` has: see buildReshard.
  const ReshardPath &find(mlir::RankedTensorType global, ShardingAttr from, ShardingAttr to, MeshAttr mesh);
  const CostTable &costs() const { return table; }
  /// ns of an all-reduce of that many bytes over these axes.
  int64_t reduceTime(int64_t bytes, MeshAttr mesh, llvm::ArrayRef<mlir::StringAttr> axes) const;

private:
  CostTable table;
  std::vector<int64_t> ranks;
  std::map<std::vector<const void *>, ReshardPath> known;
};

/// Builds, on shards, the change from one sharding to another on the same mesh, by the cheapest sequence of collectives
/// (ReshardProblem). Each moves all its axes at once, over a group in the mesh's order, so that one set of axes is one
/// communicator; another dim or order is a transpose beside it. A value that becomes a partial sum over an axis is kept
/// on the axis' first ranks and is zero elsewhere. `global` is the value's global type. Returns a value of the target's
/// local type.
mlir::Value buildReshard(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value local, mlir::RankedTensorType global,
                         ShardingAttr from, ShardingAttr to, MeshAttr mesh, ReshardPaths &paths);

/// The axes in the mesh's order.
mlir::ArrayAttr axesInOrder(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::StringAttr> axes, MeshAttr mesh);

/// Replaces the padding of an uneven dim, of global size `size` and sharded over `axes`, by `neutral`.
mlir::Value buildMask(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value local, int64_t dim, int64_t size,
                      llvm::ArrayRef<mlir::StringAttr> axes, double neutral);

} // namespace par
