// Losses inside the graph.
#include "Loss.h"
#include "GraphImporter.h"

namespace par {

using namespace mlir;

Value buildTotal(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 0)
    return value;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  return ReduceOp::create(builder, loc, type.clone(ArrayRef<int64_t>()), ReduceKind::sum, value, dims);
}

Value buildMean(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value total = buildTotal(builder, loc, value);
  auto scalar = cast<RankedTensorType>(total.getType());
  return MultiplyOp::create(builder, loc, total, buildSplat(builder, loc, scalar, 1.0 / double(type.getNumElements())));
}

Value buildCrossEntropy(OpBuilder &builder, Location loc, Value logits, Value labels, int64_t ignore) {
  auto type = cast<RankedTensorType>(logits.getType());
  auto tokens = type.clone(type.getShape().drop_back());
  return CrossEntropyOp::create(builder, loc, TypeRange{tokens, tokens}, logits, labels, ignore).getLoss();
}

Value buildCrossEntropyMean(OpBuilder &builder, Location loc, Value logits, Value labels, int64_t ignore) {
  MergedDims mergedLogits = findMergedDims(logits);
  if (mergedLogits.inner) {
    auto type = cast<RankedTensorType>(labels.getType());
    auto reshape = labels.getDefiningOp<ReshapeOp>();
    Shape shape(mergedLogits.dims);
    llvm::append_range(shape, type.getShape().drop_front());
    if (reshape && cast<RankedTensorType>(reshape.getOperand().getType()).getShape() == ArrayRef<int64_t>(shape)) {
      logits = mergedLogits.inner;
      labels = reshape.getOperand();
    }
  }
  Value sum = buildTotal(builder, loc, buildCrossEntropy(builder, loc, logits, labels, ignore));
  auto labelType = cast<RankedTensorType>(labels.getType());
  Value ignored = buildSplat(builder, loc, labelType, double(ignore));
  Value counts = CompareOp::create(builder, loc, Predicate::ne, labels, ignored);
  Type element = cast<RankedTensorType>(sum.getType()).getElementType();
  Value count = buildTotal(builder, loc, buildConvert(builder, loc, counts, element));
  return DivideOp::create(builder, loc, sum, count);
}

/// Classes are dim 1 of ONNX's scores; here they are the last one.
static Value moveClassesLast(NodeImporter &importer, Value scores) {
  auto type = cast<RankedTensorType>(scores.getType());
  SmallVector<int64_t> order{0};
  for (int64_t i = 2; i < type.getRank(); ++i)
    order.push_back(i);
  order.push_back(1);
  return type.getRank() == 2 ? scores : importer.transpose(scores, order);
}

static LogicalResult importSoftmaxCrossEntropyLoss(NodeImporter &importer) {
  FailureOr<Value> scores = importer.tensor(0), labels = importer.tensor(1);
  if (failed(scores) || failed(labels))
    return failure();
  auto type = cast<RankedTensorType>(scores->getType()), labelType = cast<RankedTensorType>(labels->getType());
  if (importer.has(2))
    return importer.unsupported("class weights");
  if (importer.isUsed(1))
    return importer.unsupported("its log_prob used");
  bool fits = type.getRank() >= 2 && labelType.getRank() == type.getRank() - 1 && isa<FloatType>(type.getElementType()) &&
              labelType.getElementType().isSignlessInteger() && labelType.getDimSize(0) == type.getDimSize(0);
  for (int64_t i = 2; i < type.getRank() && fits; ++i)
    fits = type.getDimSize(i) == labelType.getDimSize(i - 1);
  if (!fits)
    return importer.error() << "scores are " << type << ", labels " << labelType;
  int64_t ignore = importer.node.intAttribute("ignore_index", -100);
  StringRef reduction(importer.node.stringAttribute("reduction", "mean"));
  Value logits = moveClassesLast(importer, *scores);
  OpBuilder &builder = importer.builder;
  if (reduction == "mean")
    return importer.bind(buildCrossEntropyMean(builder, importer.loc, logits, *labels, ignore));
  Value loss = buildCrossEntropy(builder, importer.loc, logits, *labels, ignore);
  if (reduction == "none")
    return importer.bind(loss);
  if (reduction == "sum")
    return importer.bind(buildTotal(builder, importer.loc, loss));
  return importer.error() << "reduction is \"" << reduction << "\", expected mean, sum or none";
}

void addLossImports(ImportTable &table) { table["SoftmaxCrossEntropyLoss"] = importSoftmaxCrossEntropyLoss; }

} // namespace par
