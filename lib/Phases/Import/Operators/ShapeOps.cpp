// ONNX ops that move elements.
#include "../Graph/GraphImporter.h"

#include "llvm/ADT/StringExtras.h"

namespace par {
namespace {

using namespace mlir;

std::string spell(ArrayRef<int64_t> sizes) {
  return llvm::join(llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }), ", ");
}

LogicalResult importReshape(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> asked = importer.ints("shape", 1);
  FailureOr<Value> x = failed(asked) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  bool allowZero = importer.node.intAttribute("allowzero", 0) != 0;
  SmallVector<int64_t> sizes = asked->value_or(SmallVector<int64_t>());
  FailureOr<Shape> shape = resolveReshape(type.getShape(), sizes, allowZero);
  if (failed(shape))
    return importer.error() << type << " does not reshape to [" << spell(sizes) << "]";
  return importer.bind(importer.reshape(*x, *shape));
}

LogicalResult importFlatten(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto shape = cast<RankedTensorType>(x->getType()).getShape();
  // From the end, dims are counted without the one past the last.
  int64_t rank = shape.size(), axis = importer.node.intAttribute("axis", 1);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis > rank)
    return importer.error() << "axis is " << importer.node.intAttribute("axis", 1) << ", the tensor has " << rank
                            << " dims";
  return importer.bind(
      importer.reshape(*x, {countElements(shape.take_front(axis)), countElements(shape.drop_front(axis))}));
}

LogicalResult importUnsqueeze(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> axes = importer.ints("axes", 1);
  FailureOr<Value> x = failed(axes) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<Shape> shape = unsqueezedShape(type.getShape(), axes->value_or(SmallVector<int64_t>()));
  if (failed(shape))
    return importer.error() << "axes do not fit " << type;
  return importer.bind(importer.reshape(*x, *shape));
}

LogicalResult importSqueeze(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> axes = importer.ints("axes", 1);
  FailureOr<Value> x = failed(axes) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<Shape> shape = squeezedShape(type.getShape(), *axes);
  if (failed(shape))
    return importer.error() << "axes do not fit " << type;
  return importer.bind(importer.reshape(*x, *shape));
}

LogicalResult importTranspose(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  int64_t rank = cast<RankedTensorType>(x->getType()).getRank();
  FailureOr<SmallVector<int64_t>> asked = resolveTranspose(importer.node, rank);
  if (failed(asked))
    return importer.error() << "its perm is no permutation of " << rank << " dims";
  SmallVector<int64_t> order(*asked);
  // A transpose that keeps the first dim commutes with a merge of dims into it.
  MergedDims merged = findMergedDims(*x);
  if (!merged.inner || order[0] != 0)
    return importer.bind(importer.transpose(*x, order));
  int64_t extra = merged.dims.size() - 1;
  SmallVector<int64_t> innerOrder = llvm::to_vector(llvm::seq<int64_t>(0, extra + 1)), shape;
  for (int64_t from : ArrayRef(order).drop_front())
    innerOrder.push_back(from + extra);
  for (int64_t from : order)
    shape.push_back(cast<RankedTensorType>(x->getType()).getDimSize(from));
  return importer.bind(importer.reshape(importer.transpose(merged.inner, innerOrder), shape));
}

LogicalResult importConcat(NodeImporter &importer) {
  SmallVector<Value> inputs;
  Shape shape;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    FailureOr<Value> input = importer.tensor(i);
    if (failed(input))
      return failure();
    inputs.push_back(*input);
  }
  auto first = cast<RankedTensorType>(inputs[0].getType());
  FailureOr<int64_t> dim = importer.dim("axis", 0, first.getRank());
  if (failed(dim))
    return failure();
  shape.assign(first.getShape().begin(), first.getShape().end());
  shape[*dim] = 0;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto type = cast<RankedTensorType>(input.getType());
    bool fits = type.getRank() == first.getRank() && type.getElementType() == first.getElementType();
    for (int64_t d = 0; d < first.getRank() && fits; ++d)
      fits = d == *dim || type.getDimSize(d) == first.getDimSize(d);
    if (!fits)
      return importer.error() << "input " << i << " is " << type << ", input 0 is " << first
                              << "; they may differ only in dim " << *dim;
    shape[*dim] += type.getDimSize(*dim);
  }
  return importer.bind(ConcatOp::create(importer.builder, importer.loc, first.clone(shape), inputs, *dim));
}

LogicalResult importSlice(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> starts = importer.ints("starts", 1), ends = importer.ints("ends", 2),
                                                 axes = importer.ints("axes", 3), steps = importer.ints("steps", 4);
  if (failed(starts) || failed(ends) || failed(axes) || failed(steps))
    return failure();
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<SmallVector<SliceRange>> ranges = failure();
  if (*starts && *ends)
    ranges = resolveSlice(type.getShape(), **starts, **ends, *axes, *steps);
  if (failed(ranges))
    return importer.error() << "its starts, ends, axes and steps do not fit " << type;
  SmallVector<int64_t> from, to, by, shape, backwards;
  for (auto [dim, range] : llvm::enumerate(*ranges)) {
    int64_t first = range.start, last = first + (range.count - 1) * range.step;
    // Backwards: the same elements forwards, and then reversed.
    if (range.step < 0 && range.count > 1) {
      std::swap(first, last);
      backwards.push_back(dim);
    }
    from.push_back(range.count ? first : 0);
    to.push_back(range.count ? last + 1 : 0);
    by.push_back(range.count > 1 ? std::abs(range.step) : 1);
    shape.push_back(range.count);
  }
  Value result = *x;
  if (type.getShape() != ArrayRef(shape))
    result = SliceOp::create(importer.builder, importer.loc, type.clone(shape), result, from, to, by);
  for (int64_t dim : backwards)
    result = importer.reverse(result, dim);
  return importer.bind(result);
}

LogicalResult importExpand(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> asked = importer.ints("shape", 1);
  FailureOr<RankedTensorType> type = importer.type(0);
  if (failed(asked) || failed(type))
    return failure();
  FailureOr<Shape> shape = broadcastShapes(type->getShape(), asked->value_or(SmallVector<int64_t>()));
  if (failed(shape) || llvm::any_of(*shape, [](int64_t dim) { return dim < 0; }))
    return importer.error() << *type << " does not expand to [" << spell(asked->value_or(SmallVector<int64_t>()))
                            << "]";
  FailureOr<Value> result = importer.stretched(0, *shape);
  return failed(result) ? failure() : importer.bind(*result);
}

} // namespace

void addShapeImports(ImportTable &table) {
  table["Reshape"] = importReshape;
  table["Flatten"] = importFlatten;
  table["Unsqueeze"] = importUnsqueeze;
  table["Squeeze"] = importSqueeze;
  table["Transpose"] = importTranspose;
  table["Concat"] = importConcat;
  table["Slice"] = importSlice;
  table["Expand"] = importExpand;
}

} // namespace par
