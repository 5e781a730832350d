// Positions of the windows of convolutions and pools; WindowOps.td has the rule.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Windows over spatial dims; one entry a dim in every list.
struct Windows {
  llvm::SmallVector<int64_t, 3> size, strides, low, high, dilations;

  /// The windows of an op with the attributes of WindowOps.td; `size` are its window's dims.
  template <typename Op>
  static Windows of(Op op, llvm::ArrayRef<int64_t> size) {
    auto copy = [](llvm::ArrayRef<int64_t> values) { return llvm::SmallVector<int64_t, 3>(values); };
    return {copy(size), copy(op.getStrides()), copy(op.getLow()), copy(op.getHigh()), copy(op.getDilations())};
  }

  int64_t rank() const { return size.size(); }
  /// Elements of one window.
  int64_t elements() const;
  /// Elements that one window spans along a dim, gaps included.
  int64_t span(int64_t dim) const { return (size[dim] - 1) * dilations[dim] + 1; }
  /// Number of windows along a dim of `length` elements; at most 0 where none fits.
  int64_t count(int64_t dim, int64_t length) const;
  llvm::SmallVector<int64_t> counts(llvm::ArrayRef<int64_t> lengths) const;
  /// Index of element `element` of window `window` along a dim; outside the operand it is below 0 or past the end.
  int64_t position(int64_t dim, int64_t window, int64_t element) const {
    return window * strides[dim] + element * dilations[dim] - low[dim];
  }
  /// True if every element of every window along a dim lies within `length`.
  bool isInside(int64_t dim, int64_t length) const;
};

/// The three tensors of a convolution, whichever of them the form computes.
struct ConvolutionSides {
  mlir::Value input, filter, output;
};
inline ConvolutionSides sidesOf(ConvolutionOp op) { return {op.getOperand(), op.getFilter(), op.getResult()}; }
inline ConvolutionSides sidesOf(ConvolutionInputGradOp op) {
  return {op.getResult(), op.getFilter(), op.getCotangent()};
}
inline ConvolutionSides sidesOf(ConvolutionFilterGradOp op) {
  return {op.getOperand(), op.getResult(), op.getCotangent()};
}

/// Every window of `operand` as dims of its own, with `value` outside of the operand.
mlir::Value buildPatches(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand, const Windows &windows,
                         mlir::TypedAttr value);
/// For each window, marks the first element that equals the window's `largest`: an i1 tensor with at most one true a
/// window, whose dims are flattened.
mlir::Value buildFirstLargest(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand, mlir::Value largest,
                              const Windows &windows);
/// The smallest value of an element type: the initial value of a maximum.
mlir::TypedAttr getSmallest(mlir::OpBuilder &builder, mlir::Type element);

} // namespace par
