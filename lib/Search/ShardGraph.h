// A model's dims that one axis shards together, and what each such class divides and makes ranks send.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/Dialect/Par.h"
#include "par/Solver/Shard/ShardChoice.h"

namespace par {

/// The machine and the microbatch that a sharding is chosen for.
struct ShardSetting {
  int64_t degree = 1;                                          ///< ranks of the axis
  int64_t samples = 1;                                         ///< of a microbatch on a rank
  int64_t batch = 1;                                           ///< samples of the step that the graph has
  int64_t floatBytes = 4;                                      ///< of an element as matmuls compute
  bool latencies = true;                                       ///< messages take time beside their bytes
  bool trains = true;                                          ///< parameters have gradients, but for buffers
  const CostTable &costs;                                      ///< of the machine
  llvm::function_ref<int64_t(llvm::StringRef module)> repeats; ///< how often the model has an op of this module
};

/// A dim of a parameter, as its file stores it.
struct ParameterDim {
  std::string parameter;
  int64_t dim = 0;
  auto operator<=>(const ParameterDim &) const = default;
};

/// A value that matmuls with sharded columns read whole, and another dim of it that the axis could shard up to there.
struct ColumnInput {
  std::string node; ///< that gives it, as plans name nodes
  int64_t dim = 0;
  std::vector<size_t> members; ///< classes of such columns
};

/// Classes of equal layers are one: parameters whose names differ only in numbers are sharded alike.
///
///     fc1.weight dim 0, fc1.bias dim 0, fc2.weight dim 1: columns and rows of a pair of matmuls, found by following
///     each dim through the ops' sharding rules; it costs a sum of fc2's result and one of the gradient of fc1's input
struct ShardGraph {
  ShardProblem problem;
  std::vector<std::vector<ParameterDim>> classes; ///< by their numbers in the problem
  std::vector<ColumnInput> inputs;
};

/// "h.3.mlp.weight" as "h.*.mlp.weight"
std::string generalName(llvm::StringRef name);

/// The graph of a step as Import makes it.
ShardGraph buildShardGraph(StepOp step, const ShardSetting &setting);

} // namespace par
