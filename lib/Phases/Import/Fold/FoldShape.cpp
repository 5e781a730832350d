// Evaluates ONNX operators that make, reshape, slice or join known tensors.
#include "par/Phases/Import/Fold.h"

#include <cmath>

namespace par {
namespace {

using llvm::ArrayRef;
using llvm::failure;
using llvm::FailureOr;
using llvm::SmallVector;
using onnx::ElementType;

std::optional<StaticTensor> fromTensor(const onnx::Tensor &tensor) {
  if (tensor.storage != onnx::Storage::Inline)
    return std::nullopt;
  return StaticTensor::ofBytes(tensor.type, tensor.dims, tensor.bytes);
}

FailureOr<StaticTensor> foldConstant(const FoldContext &context) {
  if (context.node.attributes.size() != 1)
    return failure();
  const onnx::Attribute &value = context.node.attributes.front();
  switch (value.kind) {
  case onnx::Attribute::TensorValue:
    if (std::optional<StaticTensor> tensor = fromTensor(*value.tensor))
      return *tensor;
    return failure();
  case onnx::Attribute::Int:
    return StaticTensor::ofInts(ElementType::I64, {}, {value.i});
  case onnx::Attribute::Float:
    return StaticTensor::ofFloats(ElementType::F32, {}, {value.f});
  case onnx::Attribute::Ints:
    return StaticTensor::ofInts(ElementType::I64, {int64_t(value.ints.size())}, value.ints);
  case onnx::Attribute::Floats:
    return StaticTensor::ofFloats(ElementType::F32, {int64_t(value.floats.size())}, value.floats);
  default:
    return failure();
  }
}

/// The sizes in a shape tensor; fails on negative ones.
FailureOr<Shape> shapeFrom(const StaticTensor *tensor) {
  if (!tensor || tensor->getElements() > 64)
    return failure();
  Shape shape(tensor->toInts());
  if (llvm::any_of(shape, [](int64_t dim) { return dim < 0 || dim > (int64_t(1) << 40); }))
    return failure();
  return shape;
}

FailureOr<StaticTensor> foldConstantOfShape(const FoldContext &context) {
  FailureOr<Shape> shape = shapeFrom(context.input(0));
  if (failed(shape))
    return failure();
  StaticTensor value = StaticTensor::scalar(ElementType::F32, 0);
  if (const onnx::Attribute *attribute = context.node.attribute("value")) {
    std::optional<StaticTensor> given = attribute->tensor ? fromTensor(*attribute->tensor) : std::nullopt;
    if (!given || given->getElements() != 1)
      return failure();
    value = given->reshaped({});
  }
  return value.expanded(*shape);
}

FailureOr<StaticTensor> foldRange(const FoldContext &context) {
  if (context.inputs.size() != 3 ||
      llvm::any_of(context.inputs, [](auto *input) { return !input || input->getElements() != 1; }))
    return failure();
  double start = context.inputs[0]->floatAt(0), limit = context.inputs[1]->floatAt(0);
  double step = context.inputs[2]->floatAt(0);
  double count = std::max(0.0, std::ceil((limit - start) / step));
  if (!(count <= double(foldLimit)))
    return failure();
  ElementType type = context.inputs[0]->getType();
  StaticTensor result(type, {int64_t(count)}, {int64_t(count)});
  for (int64_t i = 0; i < int64_t(count); ++i)
    result.set(i, start + double(i) * step);
  return result;
}

FailureOr<StaticTensor> foldExpand(const FoldContext &context) {
  FailureOr<Shape> asked = shapeFrom(context.input(1));
  if (failed(asked) || !context.input(0))
    return failure();
  FailureOr<Shape> shape = broadcastShapes(context.input(0)->getShape(), *asked);
  if (failed(shape))
    return failure();
  return context.input(0)->expanded(*shape);
}

FailureOr<StaticTensor> reshapeTo(const FoldContext &context, FailureOr<Shape> shape) {
  if (failed(shape) || countElements(*shape) != context.input(0)->getElements())
    return failure();
  // Dims that a reshape mixes lose their single storage; only as many as folding may touch.
  if (context.input(0)->getElements() > foldLimit)
    return failure();
  return context.input(0)->reshaped(*shape);
}

FailureOr<StaticTensor> foldReshape(const FoldContext &context) {
  std::optional<SmallVector<int64_t>> asked = context.intsFrom("shape", 1);
  if (!context.input(0) || !asked)
    return failure();
  return reshapeTo(
      context, resolveReshape(context.input(0)->getShape(), *asked, context.node.intAttribute("allowzero", 0) != 0));
}

FailureOr<StaticTensor> foldFlatten(const FoldContext &context) {
  if (!context.input(0))
    return failure();
  ArrayRef<int64_t> shape = context.input(0)->getShape();
  FailureOr<int64_t> axis = normalizeDim(context.node.intAttribute("axis", 1), shape.size() + 1);
  if (failed(axis))
    return failure();
  return reshapeTo(context, Shape{countElements(shape.take_front(*axis)), countElements(shape.drop_front(*axis))});
}

/// Unsqueeze and squeeze never mix dims, so they may be as large as they like.
FailureOr<StaticTensor> foldUnsqueeze(const FoldContext &context) {
  std::optional<SmallVector<int64_t>> axes = context.intsFrom("axes", 1);
  if (!context.input(0) || !axes)
    return failure();
  FailureOr<Shape> shape = unsqueezedShape(context.input(0)->getShape(), *axes);
  if (failed(shape))
    return failure();
  return context.input(0)->reshaped(*shape);
}

FailureOr<StaticTensor> foldSqueeze(const FoldContext &context) {
  if (!context.input(0))
    return failure();
  FailureOr<Shape> shape = squeezedShape(context.input(0)->getShape(), context.intsFrom("axes", 1));
  if (failed(shape))
    return failure();
  return context.input(0)->reshaped(*shape);
}

FailureOr<StaticTensor> foldTranspose(const FoldContext &context) {
  const StaticTensor *input = context.input(0);
  if (!input)
    return failure();
  int64_t rank = input->getRank();
  FailureOr<SmallVector<int64_t>> order = resolveTranspose(context.node, rank);
  if (failed(order))
    return failure();
  Shape shape, stored;
  for (int64_t from : *order) {
    shape.push_back(input->getShape()[from]);
    stored.push_back(input->getStored()[from]);
  }
  StaticTensor result(input->getType(), shape, stored);
  Shape from(rank);
  int64_t at = 0;
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    for (int64_t i = 0; i < rank; ++i)
      from[(*order)[i]] = index[i];
    result.copy(at++, *input, input->position(from));
  });
  return result;
}

FailureOr<StaticTensor> foldConcat(const FoldContext &context) {
  if (context.inputs.empty() || !context.inputs[0])
    return failure();
  Shape shape(context.inputs[0]->getShape());
  FailureOr<int64_t> dim = normalizeDim(context.node.intAttribute("axis", 0), shape.size());
  if (failed(dim))
    return failure();
  shape[*dim] = 0;
  Shape stored(shape.size(), 1);
  for (const StaticTensor *input : context.inputs) {
    if (!input || input->getRank() != int64_t(shape.size()) || input->getType() != context.inputs[0]->getType())
      return failure();
    for (size_t i = 0; i < shape.size(); ++i) {
      if (int64_t(i) == *dim)
        shape[i] += input->getShape()[i];
      else if (shape[i] != input->getShape()[i])
        return failure();
      else if (input->getStored()[i] != 1)
        stored[i] = shape[i];
    }
  }
  stored[*dim] = shape[*dim];
  if (countElements(stored) > foldLimit)
    return failure();
  StaticTensor result(context.inputs[0]->getType(), shape, stored);
  int64_t at = 0;
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    Shape from(index);
    const StaticTensor *const *input = context.inputs.begin();
    while (from[*dim] >= (*input)->getShape()[*dim])
      from[*dim] -= (*input++)->getShape()[*dim];
    result.copy(at++, **input, (*input)->position(from));
  });
  return result;
}

FailureOr<StaticTensor> foldSlice(const FoldContext &context) {
  const StaticTensor *input = context.input(0);
  std::optional<SmallVector<int64_t>> starts = context.intsFrom("starts", 1), ends = context.intsFrom("ends", 2);
  if (!input || !starts || !ends)
    return failure();
  FailureOr<SmallVector<SliceRange>> ranges =
      resolveSlice(input->getShape(), *starts, *ends, context.intsFrom("axes", 3), context.intsFrom("steps", 4));
  if (failed(ranges))
    return failure();
  Shape shape, stored;
  for (auto [range, keep] : llvm::zip(*ranges, input->getStored())) {
    shape.push_back(range.count);
    stored.push_back(keep == 1 && range.count ? 1 : range.count);
  }
  StaticTensor result(input->getType(), shape, stored);
  Shape from(shape.size());
  int64_t at = 0;
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = (*ranges)[i].start + index[i] * (*ranges)[i].step;
    result.copy(at++, *input, input->position(from));
  });
  return result;
}

/// Keeps the elements on one side of a diagonal of the last two dims.
FailureOr<StaticTensor> foldTrilu(const FoldContext &context) {
  const StaticTensor *input = context.input(0);
  if (!input || input->getRank() < 2 || (context.input(1) && context.input(1)->getElements() != 1))
    return failure();
  int64_t diagonal = context.input(1) ? context.input(1)->intAt(0) : 0, rank = input->getRank();
  bool upper = context.node.intAttribute("upper", 1) != 0;
  Shape stored(input->getStored());
  stored[rank - 1] = input->getShape()[rank - 1];
  stored[rank - 2] = input->getShape()[rank - 2];
  if (countElements(stored) > foldLimit)
    return failure();
  StaticTensor result(input->getType(), input->getShape(), stored);
  int64_t at = 0;
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    int64_t distance = index[rank - 1] - index[rank - 2] - diagonal;
    if (upper ? distance >= 0 : distance <= 0)
      result.copy(at, *input, input->position(index));
    ++at;
  });
  return result;
}

} // namespace

void addShapeFolds(FoldTable &table) {
  table["Constant"] = foldConstant;
  table["ConstantOfShape"] = foldConstantOfShape;
  table["Range"] = foldRange;
  table["Expand"] = foldExpand;
  table["Reshape"] = foldReshape;
  table["Flatten"] = foldFlatten;
  table["Unsqueeze"] = foldUnsqueeze;
  table["Squeeze"] = foldSqueeze;
  table["Transpose"] = foldTranspose;
  table["Concat"] = foldConcat;
  table["Slice"] = foldSlice;
  table["Trilu"] = foldTrilu;
}

} // namespace par
