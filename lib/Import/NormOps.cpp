// Softmax and normalisations.
#include "GraphImporter.h"

namespace par {
namespace {

using namespace mlir;

LogicalResult importSoftmax(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", importer.opset() < 13 ? 1 : -1, type.getRank());
  if (failed(dim))
    return failure();
  // Before opset 13 all dims from the axis on were one.
  if (importer.opset() < 13 && *dim != type.getRank() - 1)
    return importer.unsupported("an axis before the last one in opset " + Twine(importer.opset()));
  Value softmax = SoftmaxOp::create(importer.builder, importer.loc, type, *x, *dim);
  if (importer.node.opType == "LogSoftmax")
    softmax = LogOp::create(importer.builder, importer.loc, type, softmax);
  return importer.bind(softmax);
}

LogicalResult importLayerNorm(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0), scale = importer.tensor(1);
  if (failed(x) || failed(scale))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", -1, type.getRank());
  if (failed(dim))
    return failure();
  auto trailing = type.clone(type.getShape().drop_front(*dim));
  if (importer.isUsed(1) || importer.isUsed(2))
    return importer.unsupported("its mean or deviation used");
  if (scale->getType() != trailing)
    return importer.error() << "its scale is " << scale->getType() << ", expected " << trailing;
  Value bias = importer.has(2) ? Value() : importer.splat(trailing, 0);
  if (!bias) {
    FailureOr<Value> given = importer.tensor(2);
    if (failed(given) || given->getType() != trailing)
      return failed(given) ? failure() : importer.error() << "its bias is " << given->getType() << ", expected " << trailing;
    bias = *given;
  }
  double epsilon = importer.node.floatAttribute("epsilon", 1e-5);
  // Look through a merge of leading dims, which are not normalised over.
  MergedDims merged = *dim > 0 ? findMergedDims(*x) : MergedDims();
  Value operand = merged.inner ? merged.inner : *x;
  auto inner = cast<RankedTensorType>(operand.getType());
  auto leading = inner.clone(inner.getShape().drop_back(trailing.getRank()));
  if (leading.getElementTypeBitWidth() < 32)
    leading = RankedTensorType::get(leading.getShape(), importer.builder.getF32Type());
  auto norm = LayerNormOp::create(importer.builder, importer.loc, TypeRange{inner, leading, leading}, operand, *scale,
                                  bias, importer.builder.getF64FloatAttr(epsilon));
  return importer.bind(importer.reshape(norm.getResult(), type.getShape()));
}

} // namespace

void addNormImports(ImportTable &table) {
  table["Softmax"] = importSoftmax;
  table["LogSoftmax"] = importSoftmax;
  table["LayerNormalization"] = importLayerNorm;
}

} // namespace par
