#pragma once

#include "par/Base/Tensor.h"

namespace par::interp {

/// Row-major strides of a shape, in elements.
llvm::SmallVector<int64_t> getStrides(llvm::ArrayRef<int64_t> shape);

/// Calls `visit(index, offset)` for every index of `shape` in row-major order, where offset moves by
/// `strides`.
template <typename Visit>
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides, Visit visit) {
  for (int64_t size : shape)
    if (size == 0)
      return;
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;
  while (true) {
    visit(llvm::ArrayRef<int64_t>(index), offset);
    int64_t dim = static_cast<int64_t>(shape.size()) - 1;
    for (; dim >= 0; --dim) {
      offset += strides[dim];
      if (++index[dim] < shape[dim])
        break;
      offset -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

/// Elements of `source` at offsets that move by `strides` over `type`'s shape, from `start` on: transposes,
/// broadcasts, slices.
Tensor pick(const Tensor &source, mlir::RankedTensorType type, llvm::ArrayRef<int64_t> strides, int64_t start = 0);

/// Copies `part` into `whole` at `start`, dims in steps of one.
void place(Tensor &whole, const Tensor &part, llvm::ArrayRef<int64_t> start);

/// Stacks tensors of one type along a new dim 0.
Tensor stack(llvm::ArrayRef<Tensor> parts);

/// Along dim: outer x size x inner, as every op along one dim sees a tensor.
struct Along {
  Along(llvm::ArrayRef<int64_t> shape, int64_t dim);
  int64_t outer = 1, size = 1, inner = 1;
};

} // namespace par::interp
