#pragma once

#include "par/Phases/Partition/Reshard.h"
#include "par/Phases/Propagate/FactorAxes.h"

namespace par {

/// How an op computes on shards: the axes that cut its factors, and with them how it takes its operands and
/// gives its results.
struct FactorChoice {
  llvm::SmallVector<Axes> factorAxes;
  llvm::SmallVector<ShardingAttr> operands, results;
};

/// Values that have been brought into another sharding.
using ReshardedValues = llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value>;

/// Of all that operands and results say of the factors, together, the choice that takes the least time: to
/// bring operands there and results to their declared shardings, and to compute. An axis that they have on
/// different factors cuts the one on which most have it, of equals that with more bytes a rank; so weights that lie
/// over the batch's axis are gathered, however large, and what most of a model's values lie over stays where
/// it is:
///
///     x: [b{dp}, k]  w: [k{dp}, n]  ->  [b{dp}, n]     gathers w
///     a: [{dp}]  b: []  c: []  d: []  ->  [{dp}]       cuts b, c, d, which sends nothing
FactorChoice chooseFactors(mlir::Operation *op, const ShardingRule &rule, MeshAttr mesh, ReshardPaths &paths,
                           const ReshardedValues &there);

} // namespace par
