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

/// Attention as exporters write it: a matmul with keys, a softmax, a matmul with values.
struct AttentionPattern {
  AttentionSide query, key, value;
  double scale = 1;
  bool causal = false;
  mlir::Value mask; ///< added to the scores, of their shape; null: none
};

/// The attention that ends in the matmul of probabilities and values. None if there is no attention, if values between
/// the two matmuls have other users, or if the matmuls have different formats.
std::optional<AttentionPattern> readAttention(DotOp values, AttentionMasks &masks);

} // namespace par
