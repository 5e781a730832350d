// Normalisations.
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

/// Input i, the `what`, broadcast to every normalised element.
FailureOr<Value> readFactor(NodeImporter &importer, size_t i, StringRef what, RankedTensorType trailing) {
  FailureOr<RankedTensorType> own = importer.type(i);
  if (failed(own))
    return failure();
  FailureOr<Shape> joined = broadcastShapes(own->getShape(), trailing.getShape());
  if (failed(joined) || ArrayRef<int64_t>(*joined) != trailing.getShape() ||
      own->getElementType() != trailing.getElementType())
    return importer.error() << "its " << what << " is " << *own << ", expected " << trailing;
  return importer.stretched(i, trailing.getShape());
}

/// Mean and 1 / deviation, if nodes use them: separate sums, since the op's have no gradients. Normalised dims stay,
/// with size 1.
LogicalResult bindStatistics(NodeImporter &importer, Value x, int64_t dim, double epsilon) {
  if (!importer.isUsed(1) && !importer.isUsed(2))
    return success();
  Term wide = termOf(importer, x);
  if (wide.getType().getElementTypeBitWidth() < 32)
    wide = wide.convert(importer.builder.getF32Type());
  SmallVector<int64_t> dims = dimRange(dim, wide.getType().getRank()), kept(wide.getShape().take_front(dim));
  kept.resize(wide.getShape().size(), 1);
  double count = double(countElements(wide.getShape().drop_front(dim)));
  Term centred = wide - wide.reduceKeeping(ReduceKind::sum, dims) / count;
  Term mean = wide.reduce(ReduceKind::sum, dims) / count;
  Term variance = (centred * centred).reduce(ReduceKind::sum, dims) / count;
  if (failed(importer.bind(importer.reshape(mean, kept), 1)))
    return failure();
  return importer.bind(importer.reshape(rsqrt(variance + epsilon), kept), 2);
}

LogicalResult importLayerNorm(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", -1, type.getRank());
  if (failed(dim))
    return failure();
  auto trailing = type.clone(type.getShape().drop_front(*dim));
  FailureOr<Value> scale = readFactor(importer, 1, "scale", trailing);
  FailureOr<Value> bias =
      importer.has(2) ? readFactor(importer, 2, "bias", trailing) : FailureOr<Value>(importer.splat(trailing, 0));
  if (failed(scale) || failed(bias))
    return failure();
  double epsilon = importer.node.floatAttribute("epsilon", 1e-5);
  // Look through a merge of leading dims, which are not normalised over.
  MergedDims merged = *dim > 0 ? findMergedDims(*x) : MergedDims();
  Value operand = merged.inner ? merged.inner : *x;
  auto inner = cast<RankedTensorType>(operand.getType());
  auto leading = inner.clone(inner.getShape().drop_back(trailing.getRank()));
  if (leading.getElementTypeBitWidth() < 32)
    leading = RankedTensorType::get(leading.getShape(), importer.builder.getF32Type());
  auto norm = LayerNormOp::create(importer.builder, importer.loc, TypeRange{inner, leading, leading}, operand, *scale,
                                  *bias, importer.builder.getF64FloatAttr(epsilon));
  if (failed(bindStatistics(importer, *x, *dim, epsilon)))
    return failure();
  return importer.bind(importer.reshape(norm.getResult(), type.getShape()));
}

} // namespace

void addNormImports(ImportTable &table) { table["LayerNormalization"] = importLayerNorm; }

} // namespace par
