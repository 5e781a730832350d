#include "StridedView.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace par {

StridedView StridedView::dense(ArrayRef<int64_t> shape) {
  StridedView view{SmallVector<int64_t>(shape), SmallVector<int64_t>(shape.size(), 1)};
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    view.strides[dim] = view.strides[dim + 1] * shape[dim + 1];
  return view;
}

StridedView StridedView::transposed(ArrayRef<int64_t> permutation) const {
  StridedView view;
  view.offset = offset;
  for (int64_t dim : permutation) {
    view.sizes.push_back(sizes[dim]);
    view.strides.push_back(strides[dim]);
  }
  return view;
}

StridedView StridedView::sliced(ArrayRef<int64_t> starts, ArrayRef<int64_t> limits, ArrayRef<int64_t> steps) const {
  StridedView view{{}, {}, offset};
  for (auto [start, limit, step, stride] : llvm::zip_equal(starts, limits, steps, strides)) {
    view.offset += start * stride;
    view.sizes.push_back(llvm::divideCeil(limit - start, step));
    view.strides.push_back(step * stride);
  }
  return view;
}

/// Joins neighbours that lie one inside the other, and leaves out dims of size 1.
static StridedView coalesce(const StridedView &view) {
  StridedView joined;
  for (auto [size, stride] : llvm::zip(view.sizes, view.strides)) {
    if (size == 1)
      continue;
    if (!joined.sizes.empty() && joined.strides.back() == size * stride) {
      joined.sizes.back() *= size;
      joined.strides.back() = stride;
      continue;
    }
    joined.sizes.push_back(size);
    joined.strides.push_back(stride);
  }
  return joined;
}

std::optional<StridedView> StridedView::reshaped(ArrayRef<int64_t> shape) const {
  // Nothing lies anywhere in an empty tensor, and its sizes divide nothing.
  if (llvm::is_contained(shape, 0) || llvm::is_contained(sizes, 0))
    return std::nullopt;
  StridedView from = coalesce(*this), view{SmallVector<int64_t>(shape), SmallVector<int64_t>(shape.size(), 1), offset};
  // From the innermost dim outwards, each new dim is split from the rest of an old one.
  int64_t old = int64_t(from.sizes.size()) - 1, done = 1;
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    if (shape[dim] == 1)
      continue;
    if (old >= 0 && done == from.sizes[old]) {
      --old;
      done = 1;
    }
    if (old < 0 || from.sizes[old] % (done * shape[dim]) != 0)
      return std::nullopt;
    view.strides[dim] = from.strides[old] * done;
    done *= shape[dim];
  }
  return view;
}

std::optional<StridedView> viewForward(Operation *op, const StridedView &operand) {
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return operand.transposed(transpose.getPermutation());
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return operand.reshaped(getTensorType(reshape.getType()).getShape());
  if (auto slice = dyn_cast<SliceOp>(op))
    return operand.sliced(slice.getStarts(), slice.getLimits(), slice.getStrides());
  return std::nullopt;
}

std::optional<StridedView> viewBehind(Value source, ArrayRef<Operation *> moves) {
  std::optional<StridedView> view = StridedView::dense(getTensorType(source.getType()).getShape());
  for (Operation *op : llvm::reverse(moves))
    if (view)
      view = viewForward(op, *view);
  return view;
}

std::optional<StridedView> viewBackward(Operation *op, const StridedView &result) {
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    SmallVector<int64_t> inverse(result.sizes.size());
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
      inverse[source] = dim;
    return result.transposed(inverse);
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return result.reshaped(getTensorType(reshape.getOperand().getType()).getShape());
  return std::nullopt;
}

} // namespace par
