#pragma once

#include "par/Dialect/Par.h"

// Few files use these two ops, so they have a header of their own.
#define GET_OP_CLASSES
#include "par/Dialect/AttentionOps.h.inc"

namespace par {

/// The sizes of an attention, forward or backward, by the names of AttentionOps.td: h = groups · repeats.
struct Heads {
  template <typename Op>
  explicit Heads(Op op)
      : Heads(llvm::cast<mlir::RankedTensorType>(op.getQuery().getType()),
              llvm::cast<mlir::RankedTensorType>(op.getKey().getType()),
              llvm::cast<mlir::RankedTensorType>(op.getValue().getType())) {}
  Heads(mlir::RankedTensorType query, mlir::RankedTensorType key, mlir::RankedTensorType value)
      : batch(query.getDimSize(0)), heads(query.getDimSize(1)), groups(key.getDimSize(1)), repeats(heads / groups),
        queries(query.getDimSize(2)), keys(key.getDimSize(2)), width(query.getDimSize(3)),
        valueWidth(value.getDimSize(3)), element(query.getElementType()),
        inner(element.getIntOrFloatBitWidth() < 32 ? mlir::Type(mlir::Float32Type::get(element.getContext()))
                                                   : element) {}

  mlir::RankedTensorType attendedType() const {
    return mlir::RankedTensorType::get({batch, heads, queries, valueWidth}, element);
  }
  mlir::RankedTensorType lseType() const { return mlir::RankedTensorType::get({batch, heads, queries}, inner); }

  /// Whether a library of GPUs has one call for attention of these sizes: a narrow format, and head dims that its tiles
  /// hold.
  bool fitLibrary() const {
    auto fits = [](int64_t size) { return size % 8 == 0 && size <= 128; };
    return element != inner && fits(width) && fits(valueWidth);
  }

  int64_t batch, heads, groups, repeats, queries, keys, width, valueWidth;
  mlir::Type element; ///< of operands and results
  mlir::Type inner;   ///< in which it computes
};

/// Whether the runtime has one call for the op on that device: a CPU's of f32 takes all sizes, a library of GPUs some
/// narrow ones.
inline bool isOneCall(AttentionOp op, bool gpu) {
  Heads heads(op);
  return heads.fitLibrary() || (!gpu && heads.element.isF32());
}
/// As above. GPU libraries have no call with a mask: they compute e^(s - lse) without dividing by its sum. If a mask of
/// -1e9 hides all scores of a query, lse = -1e9 + log(number of keys) loses the log in f32.
inline bool isOneCall(AttentionGradOp op, bool gpu) {
  Heads heads(op);
  return (!op.getMask() && heads.fitLibrary()) || (!gpu && heads.element.isF32());
}

} // namespace par
