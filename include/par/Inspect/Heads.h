// Attention heads that the plan's axes do not divide.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace par {

/// Heads that an axis is to shard and does not divide: attention is sharded as far as it does, and else runs whole on
/// each rank of the axis, after gathers.
struct UnshardedHeads {
  std::string module; ///< `h.*.attn`, where heads are split off
  std::string axis;   ///< as the plan names it
  int64_t heads = 0;
  int64_t degree = 1;  ///< ranks of the axis
  int64_t shards = 1;  ///< into which heads are sharded; 1: none
  int64_t nearest = 1; ///< the degree next to this one that divides the heads
};

/// Each case once, in the order of the program. Expects the module after Propagate.
std::vector<UnshardedHeads> findUnshardedHeads(mlir::ModuleOp module);

} // namespace par
