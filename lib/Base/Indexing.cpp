#include "par/Base/Indexing.h"

using namespace mlir;

namespace par::interp {

SmallVector<int64_t> getStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

Tensor pick(const Tensor &source, RankedTensorType type, ArrayRef<int64_t> strides, int64_t start) {
  Tensor result(type);
  int64_t at = 0;
  if (source.isFloat()) {
    ArrayRef<double> from = source.floats();
    MutableArrayRef<double> to = result.mutableFloats();
    forEachIndex(type.getShape(), strides, [&](ArrayRef<int64_t>, int64_t offset) { to[at++] = from[start + offset]; });
  } else {
    ArrayRef<int64_t> from = source.ints();
    MutableArrayRef<int64_t> to = result.mutableInts();
    forEachIndex(type.getShape(), strides, [&](ArrayRef<int64_t>, int64_t offset) { to[at++] = from[start + offset]; });
  }
  return result;
}

void place(Tensor &whole, const Tensor &part, ArrayRef<int64_t> start) {
  SmallVector<int64_t> strides = getStrides(whole.getShape());
  int64_t first = 0, at = 0;
  for (auto [from, stride] : llvm::zip(start, strides))
    first += from * stride;
  if (whole.isFloat()) {
    auto to = whole.mutableFloats();
    forEachIndex(part.getShape(), strides,
                 [&](ArrayRef<int64_t>, int64_t offset) { to[first + offset] = part.floats()[at++]; });
  } else {
    auto to = whole.mutableInts();
    forEachIndex(part.getShape(), strides,
                 [&](ArrayRef<int64_t>, int64_t offset) { to[first + offset] = part.ints()[at++]; });
  }
}

Along::Along(ArrayRef<int64_t> shape, int64_t dim) : size(shape[dim]) {
  for (int64_t before : shape.take_front(dim))
    outer *= before;
  for (int64_t behind : shape.drop_front(dim + 1))
    inner *= behind;
}

Tensor stack(llvm::ArrayRef<Tensor> parts) {
  llvm::SmallVector<int64_t> shape(parts.front().getShape());
  shape.insert(shape.begin(), parts.size());
  Tensor whole(parts.front().getType().clone(shape));
  for (auto [index, part] : llvm::enumerate(parts))
    if (whole.isFloat())
      llvm::copy(part.floats(), whole.mutableFloats().begin() + index * part.getSize());
    else
      llvm::copy(part.ints(), whole.mutableInts().begin() + index * part.getSize());
  return whole;
}

} // namespace par::interp
