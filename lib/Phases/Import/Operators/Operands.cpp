#include "Operands.h"

namespace par {

using namespace mlir;

static FailureOr<Shape> joinShapes(NodeImporter &importer) {
  Shape shape;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    FailureOr<RankedTensorType> type = importer.type(i);
    if (failed(type))
      return failure();
    FailureOr<Shape> joined = broadcastShapes(shape, type->getShape());
    if (failed(joined))
      return importer.error() << "input " << i << " is " << *type << ", which does not broadcast with the others";
    shape = *joined;
  }
  return shape;
}

/// The dims that every operand of full rank merges into its first one; the others must not reach that dim. So a batch
/// dim that the exporter flattened stays a dim of its own: the merge moves to the result.
static Shape commonMerge(NodeImporter &importer, ArrayRef<int64_t> shape) {
  Shape merged;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    const GraphValue *value = importer.value(i);
    auto own = value->known ? value->known->getShape() : cast<RankedTensorType>(value->computed.getType()).getShape();
    if (own.size() < shape.size())
      continue;
    MergedDims found = value->known ? MergedDims() : findMergedDims(value->computed);
    if (!found.inner || own != shape || (!merged.empty() && merged != found.dims))
      return {};
    merged = found.dims;
  }
  return merged;
}

FailureOr<Operands> joinOperands(NodeImporter &importer) {
  FailureOr<Shape> shape = joinShapes(importer);
  if (failed(shape))
    return failure();
  Operands operands{{}, *shape};
  Shape merged = commonMerge(importer, *shape), inner(merged);
  llvm::append_range(inner, ArrayRef(*shape).drop_front(merged.empty() ? 0 : 1));
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    FailureOr<RankedTensorType> own = importer.type(i);
    FailureOr<Value> value = failure();
    if (!merged.empty() && own->getRank() == int64_t(shape->size()))
      value = findMergedDims(importer.value(i)->computed).inner;
    else
      value = importer.stretched(i, inner);
    if (failed(value))
      return failure();
    operands.values.push_back(*value);
  }
  return operands;
}

LogicalResult bindElements(NodeImporter &importer, Value result, const Operands &operands) {
  return importer.bind(importer.reshape(result, operands.finalShape));
}

FailureOr<Operands> sameTypeOperands(NodeImporter &importer, bool floats) {
  FailureOr<Operands> operands = joinOperands(importer);
  if (failed(operands))
    return failure();
  for (size_t i = 0; i < operands->values.size(); ++i) {
    if (operands->type(i) != operands->type(0))
      return importer.error() << "input " << i << " is " << operands->type(i).getElementType() << ", input 0 is "
                              << operands->type(0).getElementType();
    if (floats && !isa<FloatType>(operands->type(i).getElementType()))
      return importer.error() << "op " << importer.node.opType << " of " << operands->type(i).getElementType()
                              << " is not supported yet";
  }
  return operands;
}

Term positions(NodeImporter &importer, RankedTensorType type, int64_t dim) {
  return termOf(importer,
                IotaOp::create(importer.builder, importer.loc, type.clone(importer.builder.getI64Type()), dim));
}

Term sigmoid(Term x) { return x.with(SigmoidOp::create(x.getBuilder(), x.getLoc(), x)); }

Term log1p(Term x) {
  // Infinite and large x need no correction, and their gradient must not be NaN.
  Term small = x.compare(Predicate::lt, 1).select(x, x.splat(0)), rounded = 1.0 + small;
  return log(1.0 + x) + (small - (rounded - 1.0)) / rounded;
}

Term absolute(Term x) { return x.with(AbsOp::create(x.getBuilder(), x.getLoc(), x)); }

} // namespace par
