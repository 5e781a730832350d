// Activations and what stands beside them.
#include "GraphImporter.h"

namespace par {
namespace {

using namespace mlir;

LogicalResult importRelu(NodeImporter &importer) {
  FailureOr<Value> operand = importer.tensor(0);
  if (failed(operand))
    return failure();
  auto type = cast<RankedTensorType>(operand->getType());
  // Not maximum: relu has the gradient 0 at 0, and PyTorch's maximum has a half.
  MergedDims merged = findMergedDims(*operand);
  Value x = merged.inner ? merged.inner : *operand;
  Value zero = importer.splat(cast<RankedTensorType>(x.getType()), 0);
  Value positive = CompareOp::create(importer.builder, importer.loc, Predicate::gt, x, zero);
  Value result = SelectOp::create(importer.builder, importer.loc, x.getType(), positive, x, zero);
  return importer.bind(importer.reshape(result, type.getShape()));
}

LogicalResult importGelu(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  bool tanh = importer.node.stringAttribute("approximate", "none") == "tanh";
  return importer.bind(GeluOp::create(importer.builder, importer.loc, x->getType(), *x, tanh));
}

LogicalResult importClip(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  Value result = *x;
  for (size_t i : {1, 2}) {
    const char *attribute = i == 1 ? "min" : "max"; // before opset 11
    Value bound;
    if (importer.has(i)) {
      FailureOr<Value> given = importer.stretched(i, type.getShape());
      if (failed(given) || given->getType() != type)
        return failed(given) ? failure() : importer.unsupported("bounds of another type");
      bound = *given;
    } else if (importer.node.attribute(attribute)) {
      bound = importer.splat(type, importer.node.floatAttribute(attribute, 0));
    }
    if (bound && i == 1)
      result = MaximumOp::create(importer.builder, importer.loc, result, bound);
    else if (bound)
      result = MinimumOp::create(importer.builder, importer.loc, result, bound);
  }
  return importer.bind(result);
}

/// Without a training flag, or with ratio 0, Dropout passes its operand on.
LogicalResult importDropout(NodeImporter &importer) {
  const StaticTensor *training = importer.known(2), *ratio = importer.known(1);
  bool active = importer.has(2) && (!training || training->splat().value_or(1) != 0);
  if (active && !(ratio && ratio->splat() == 0.0))
    return importer.unsupported("training_mode true");
  if (importer.isUsed(1))
    return importer.unsupported("its mask used");
  FailureOr<Value> x = importer.tensor(0);
  return failed(x) ? failure() : importer.bind(*x);
}

} // namespace

void addActivationImports(ImportTable &table) {
  table["Relu"] = importRelu;
  table["Gelu"] = importGelu;
  table["Clip"] = importClip;
  table["Dropout"] = importDropout;
}

} // namespace par
