// Dropout where nothing is dropped.
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

/// Without a training flag, with ratio 0, or where the model predicts, Dropout passes its operand on. Before opset 12 it had no flag.
LogicalResult importDropout(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  const StaticTensor *ratio = importer.known(1), *training = importer.known(2);
  bool active = !importer.serves() && importer.has(2) && (!training || training->splat().value_or(1) != 0);
  if (active && !(ratio && ratio->splat() == 0.0))
    return importer.unsupported("training_mode true");
  if (importer.isUsed(1)) {
    auto type = cast<RankedTensorType>(x->getType());
    Value all = importer.splat(type.clone(importer.builder.getI1Type()), 1);
    if (failed(importer.bind(all, 1)))
      return failure();
  }
  return importer.bind(*x);
}

} // namespace

void addDropoutImports(ImportTable &table) { table["Dropout"] = importDropout; }

} // namespace par
