// Products of any kind, as the passes over formats see them.
#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"

namespace par {

/// Linear in each of its two operands, with a result type of its own: a matmul, a convolution.
inline bool isBilinear(mlir::Operation *op) {
  auto rule = llvm::dyn_cast_or_null<ShardingRuleOpInterface>(op);
  return rule && op->getNumOperands() == 2 && !op->hasTrait<mlir::OpTrait::Elementwise>() &&
         rule.getShardingRule().linear.size() == 2;
}

} // namespace par
