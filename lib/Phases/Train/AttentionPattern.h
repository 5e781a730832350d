#pragma once

#include "AttentionMask.h"

namespace par {

/// One operand of an attention: a value whose dims `order` are batch, heads (or groups of heads that share it),
/// sequence and head dim.
struct AttentionSide {
  mlir::Value value;
  llvm::SmallVector<int64_t> order;
  double factor = 1; ///< that it is multiplied by
};

/// Attention as exporters write it: a product with keys, a softmax, a product with values.
struct AttentionPattern {
  AttentionSide query, key, value;
  double scale = 1;
  bool causal = false;
  mlir::Value mask; ///< added to the scores, of their shape; null: none
};

/// The attention that ends in the product of probabilities and values; none if it is none, if what is between the two
/// products is read by others, or if the products are not of one format.
std::optional<AttentionPattern> readAttention(DotOp values, AttentionMasks &masks);

} // namespace par
