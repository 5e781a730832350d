#pragma once

#include "par/Phases/Partition/Reshard.h"
#include "par/Phases/Propagate/FactorAxes.h"

namespace par {

/// How an op computes on shards: the axes that shard its factors, and the shardings of its operands and results that
/// follow.
struct FactorChoice {
  llvm::SmallVector<Axes> factorAxes;
  llvm::SmallVector<ShardingAttr> operands, results;
};

/// Values that have been brought into another sharding.
using ReshardedValues = llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value>;

/// The fastest choice for an op: the time to reshard operands and results from and to their declared shardings, and to
/// compute. An axis on different factors shards the factor that has it in most tensors; on a tie, the one with more
/// bytes a rank. So weights sharded over the batch's axis are gathered, however large, and the activations stay in
/// place:
///
///     x: [b{dp}, k]  w: [k{dp}, n]  ->  [b{dp}, n]     gathers w
///     a: [{dp}]  b: []  c: []  d: []  ->  [{dp}]       shards b, c, d, which sends nothing
///
/// A factor along which rows are addressed may have the axis instead, if that costs less:
///
///     table: [v{tp}, h]  ids: [s{tp}]  ->  [s{tp}, h]    looks ids up in the shards, or gathers the table
///
/// Not an axis of `gathered`, over which parameters are stored as shards (ZeRO-3): a table is gathered as other
/// weights.
FactorChoice chooseFactors(mlir::Operation *op, const ShardingRule &rule, MeshAttr mesh, ReshardPaths &paths,
                           const ReshardedValues &there, llvm::ArrayRef<std::string> gathered);

} // namespace par
