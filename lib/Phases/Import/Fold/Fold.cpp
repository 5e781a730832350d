// Evaluates ONNX nodes whose inputs are known, by a table of one function an operator, with shape inference (reshape,
// squeeze, transpose) that importing shares.
#include "par/Phases/Import/Fold.h"
#include "par/Phases/Import/Families.h"

namespace par {

using llvm::ArrayRef;
using llvm::failure;
using llvm::FailureOr;
using llvm::SmallVector;

std::optional<SmallVector<int64_t>> FoldContext::intsFrom(llvm::StringRef attribute, size_t position) const {
  if (const StaticTensor *value = input(position))
    return value->toInts();
  const onnx::Attribute *found = node.attribute(std::string_view(attribute));
  if (!found || found->kind != onnx::Attribute::Ints)
    return std::nullopt;
  return SmallVector<int64_t>(found->ints.begin(), found->ints.end());
}

Folder::Folder(int64_t opset)
    : opset(opset),
      table(joinFamilies<FoldFunction>({addElementwiseFolds, addShapeFolds, addIndexFolds, addReduceFolds})) {}

FailureOr<StaticTensor> Folder::fold(const onnx::Node &node, ArrayRef<const StaticTensor *> inputs) const {
  auto row = table.find(node.opType);
  if (!node.domain.empty() || row == table.end())
    return failure();
  for (const StaticTensor *input : inputs)
    if (input && onnx::byteSize(input->getType()) == 0)
      return failure();
  FailureOr<StaticTensor> result = row->second({node, inputs, opset});
  if (succeeded(result))
    result->compact();
  return result;
}

FailureOr<int64_t> normalizeDim(int64_t dim, int64_t rank) {
  if (dim < -rank || dim >= rank)
    return failure();
  return dim < 0 ? dim + rank : dim;
}

FailureOr<SmallVector<int64_t>> resolveTranspose(const onnx::Node &node, int64_t rank) {
  SmallVector<int64_t> order;
  if (const onnx::Attribute *perm = node.attribute("perm"))
    order.assign(perm->ints.begin(), perm->ints.end());
  else
    for (int64_t i = rank; i-- > 0;)
      order.push_back(i);
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  if (int64_t(sorted.size()) != rank)
    return failure();
  for (int64_t i = 0; i < rank; ++i)
    if (sorted[i] != i)
      return failure();
  return order;
}

FailureOr<Shape> resolveReshape(ArrayRef<int64_t> from, ArrayRef<int64_t> asked, bool allowZero) {
  Shape result;
  int64_t known = 1;
  std::optional<size_t> open;
  for (auto [i, dim] : llvm::enumerate(asked)) {
    int64_t size = dim;
    if (dim == 0 && !allowZero) {
      if (i >= from.size())
        return failure();
      size = from[i];
    }
    if (size < -1 || (size == -1 && open))
      return failure();
    if (size == -1)
      open = i;
    else if (__builtin_mul_overflow(known, size, &known))
      return failure();
    result.push_back(size);
  }
  int64_t total = countElements(from);
  if (open) {
    if (known == 0 || total % known)
      return failure();
    result[*open] = total / known;
    known *= result[*open];
  }
  if (known != total)
    return failure();
  return result;
}

FailureOr<SmallVector<SliceRange>> resolveSlice(ArrayRef<int64_t> shape, ArrayRef<int64_t> starts,
                                                ArrayRef<int64_t> ends, std::optional<SmallVector<int64_t>> axes,
                                                std::optional<SmallVector<int64_t>> steps) {
  SmallVector<SliceRange> ranges;
  for (int64_t size : shape)
    ranges.push_back({0, 1, size});
  if (starts.size() != ends.size() || (axes && axes->size() != starts.size()) ||
      (steps && steps->size() != starts.size()))
    return failure();
  for (size_t i = 0; i < starts.size(); ++i) {
    FailureOr<int64_t> dim = normalizeDim(axes ? (*axes)[i] : int64_t(i), shape.size());
    int64_t step = steps ? (*steps)[i] : 1;
    if (failed(dim) || step == 0)
      return failure();
    int64_t size = shape[*dim], start = starts[i], end = ends[i];
    // ONNX's clamping: [0, size] forwards, [-1, size - 1] backwards, after negative starts are counted from the end.
    start = start < 0 ? std::max<int64_t>(start, -size) + size : start;
    end = end < -size ? -1 : end < 0 ? end + size : end;
    if (step > 0) {
      start = std::clamp<int64_t>(start, 0, size);
      end = std::clamp<int64_t>(end, 0, size);
      ranges[*dim] = {start, step, end > start ? (end - start - 1) / step + 1 : 0};
    } else {
      start = std::clamp<int64_t>(start, -1, size - 1);
      end = std::clamp<int64_t>(end, -1, size - 1);
      int64_t back = step == INT64_MIN ? INT64_MAX : -step;
      ranges[*dim] = {start, step, start > end ? (start - end - 1) / back + 1 : 0};
    }
    if (ranges[*dim].count <= 1)
      ranges[*dim].step = 1; // a step that nothing takes may be any number
  }
  return ranges;
}

FailureOr<Shape> unsqueezedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes) {
  int64_t rank = shape.size() + axes.size();
  Shape result(rank, -1);
  for (int64_t axis : axes) {
    FailureOr<int64_t> dim = normalizeDim(axis, rank);
    if (failed(dim) || result[*dim] == 1)
      return failure();
    result[*dim] = 1;
  }
  size_t next = 0;
  for (int64_t &dim : result)
    if (dim == -1)
      dim = shape[next++];
  return result;
}

FailureOr<Shape> squeezedShape(ArrayRef<int64_t> shape, std::optional<SmallVector<int64_t>> axes) {
  SmallVector<bool> drop(shape.size(), false);
  if (axes) {
    for (int64_t axis : *axes) {
      FailureOr<int64_t> dim = normalizeDim(axis, shape.size());
      if (failed(dim) || shape[*dim] != 1)
        return failure();
      drop[*dim] = true;
    }
  } else {
    for (size_t i = 0; i < shape.size(); ++i)
      drop[i] = shape[i] == 1;
  }
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!drop[i])
      result.push_back(shape[i]);
  return result;
}

} // namespace par
