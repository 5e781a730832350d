// Softmax and its logarithm.
#include "Operands.h"

namespace par {

using namespace mlir;

Term logSoftmax(Term x, int64_t dim) {
  Term shifted = x - x.reduceKeeping(ReduceKind::max, {dim});
  Term total = log(exp(shifted).reduce(ReduceKind::sum, {dim}));
  return shifted - total.broadcast(otherDims(x.getType().getRank(), {dim}), x.getShape());
}

namespace {

/// The operand, and the dim that the node works along. Before opset 13 all dims from the axis on were one.
struct Rows {
  Value operand;
  int64_t dim;
  RankedTensorType type; ///< of the node's result
};

FailureOr<Rows> readRows(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (!isa<FloatType>(type.getElementType()))
    return importer.error() << "operand is " << type << ", expected floats";
  bool old = importer.opset() < 13;
  FailureOr<int64_t> dim = importer.dim("axis", old ? 1 : -1, type.getRank());
  if (failed(dim))
    return failure();
  if (!old || *dim == type.getRank() - 1)
    return Rows{*x, *dim, type};
  ArrayRef<int64_t> shape = type.getShape();
  SmallVector<int64_t> rows(shape.take_front(*dim));
  rows.push_back(countElements(shape.drop_front(*dim)));
  return Rows{importer.reshape(*x, rows), *dim, type};
}

LogicalResult importSoftmax(NodeImporter &importer) {
  FailureOr<Rows> rows = readRows(importer);
  if (failed(rows))
    return failure();
  Value result = SoftmaxOp::create(importer.builder, importer.loc, rows->operand.getType(), rows->operand, rows->dim);
  return importer.bind(importer.reshape(result, rows->type.getShape()));
}

LogicalResult importLogSoftmax(NodeImporter &importer) {
  FailureOr<Rows> rows = readRows(importer);
  if (failed(rows))
    return failure();
  Term result = logSoftmax(termOf(importer, rows->operand), rows->dim);
  return importer.bind(importer.reshape(result, rows->type.getShape()));
}

} // namespace

void addSoftmaxImports(ImportTable &table) {
  table["Softmax"] = importSoftmax;
  table["LogSoftmax"] = importLogSoftmax;
}

} // namespace par
