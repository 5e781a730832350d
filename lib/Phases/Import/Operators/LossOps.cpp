// Losses inside the graph.
#include "Indices.h"
#include "Loss.h"
#include "Operands.h"

#include <numeric>

namespace par {

using namespace mlir;

Value buildTotal(OpBuilder &builder, Location loc, Value value) {
  // Elements in another shape add up to the same; dims that were merged stay apart.
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
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

/// As PyTorch's label_smoothing: 1 - smoothing times log(sum e^z) - z[label], plus `smoothing` times its mean over all
/// classes, for labels that count.
static Value smoothLosses(CrossEntropyOp hard, double smoothing) {
  OpBuilder builder(hard->getContext());
  builder.setInsertionPointAfter(hard);
  Term losses(builder, hard.getLoc(), hard.getLoss()), scores = losses.with(hard.getLogits());
  int64_t classes = scores.getType().getRank() - 1;
  Term mean = scores.reduce(ReduceKind::sum, classes) / double(scores.getShape().back());
  Term counts = losses.with(hard.getLabels()).compare(Predicate::ne, static_cast<int64_t>(hard.getIgnore()));
  Term even = counts.select(losses.with(hard.getLse()) - mean, losses.splat(0));
  return losses * (1 - smoothing) + even * smoothing;
}

/// Undoes equal merges of leading dims in scores and labels.
static void takeApart(Value &logits, Value &labels) {
  MergedDims merged = findMergedDims(logits);
  auto reshape = labels.getDefiningOp<ReshapeOp>();
  if (!merged.inner || !reshape)
    return;
  Shape shape(merged.dims);
  llvm::append_range(shape, cast<RankedTensorType>(labels.getType()).getShape().drop_front());
  if (cast<RankedTensorType>(reshape.getOperand().getType()).getShape() != ArrayRef<int64_t>(shape))
    return;
  logits = merged.inner;
  labels = reshape.getOperand();
}

Value buildCrossEntropy(OpBuilder &builder, Location loc, Value logits, Value labels, int64_t ignore,
                        double smoothing) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(labels.getType()).getShape();
  takeApart(logits, labels);
  // The op's losses are at least f32.
  if (getElementTypeOrSelf(logits).getIntOrFloatBitWidth() < 32)
    logits = buildConvert(builder, loc, logits, builder.getF32Type());
  auto type = cast<RankedTensorType>(logits.getType());
  auto tokens = type.clone(type.getShape().drop_back());
  auto losses = CrossEntropyOp::create(builder, loc, TypeRange{tokens, tokens}, logits, labels, ignore);
  Value result = smoothing == 0 ? losses.getLoss() : smoothLosses(losses, smoothing);
  return tokens.getShape() == shape ? result : buildReshape(builder, loc, result, shape);
}

Value buildCrossEntropyMean(OpBuilder &builder, Location loc, Value logits, Value labels, int64_t ignore,
                            double smoothing) {
  takeApart(logits, labels);
  Value sum = buildTotal(builder, loc, buildCrossEntropy(builder, loc, logits, labels, ignore, smoothing));
  auto labelType = cast<RankedTensorType>(labels.getType());
  Value ignored = buildSplat(builder, loc, labelType, double(ignore));
  Value counts = CompareOp::create(builder, loc, Predicate::ne, labels, ignored);
  Type element = cast<RankedTensorType>(sum.getType()).getElementType();
  Value count = buildTotal(builder, loc, buildConvert(builder, loc, counts, element));
  return DivideOp::create(builder, loc, sum, count);
}

/// The weights as a constant in the last dim of scores of these dims.
static Term spreadWeights(Term scores, ArrayRef<double> weights) {
  SmallVector<APFloat> numbers;
  auto type = cast<FloatType>(scores.getType().getElementType());
  for (double weight : weights) {
    bool inexact = false;
    numbers.emplace_back(weight).convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  }
  auto table = RankedTensorType::get({static_cast<int64_t>(weights.size())}, type);
  return scores.with(ConstantOp::create(scores.getBuilder(), scores.getLoc(), DenseElementsAttr::get(table, numbers)));
}

/// At least f32, as the op's losses are.
static Value widenScores(OpBuilder &builder, Value logits) {
  if (getElementTypeOrSelf(logits).getIntOrFloatBitWidth() >= 32)
    return logits;
  return buildConvert(builder, logits.getLoc(), logits, builder.getF32Type());
}

Value buildWeightedCrossEntropyMean(OpBuilder &builder, Location loc, Value logits, Value labels, int64_t ignore,
                                    double smoothing, ArrayRef<double> weights) {
  takeApart(logits, labels);
  Term scores(builder, loc, widenScores(builder, logits)), names = scores.with(labels);
  int64_t last = scores.getType().getRank() - 1, classes = scores.getShape().back();
  auto tokens = scores.getType().clone(scores.getShape().drop_back());
  auto hard = CrossEntropyOp::create(builder, loc, TypeRange{tokens, tokens}, scores, labels, ignore);
  Term table = spreadWeights(scores, weights), counts = names.compare(Predicate::ne, double(ignore));
  Value index = counts.select(names, names.splat(0));
  Term own = scores.with(GatherOp::create(builder, loc, table, index, 0));
  own = counts.select(own, own.splat(0));
  Term losses = own * scores.with(hard.getLoss());
  if (smoothing != 0) {
    // The sum over classes of w (lse - z).
    double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    Term spread = table.broadcast({last}, scores.getShape());
    Term even = scores.with(hard.getLse()) * all - (scores * spread).reduce(ReduceKind::sum, last);
    losses = losses * (1 - smoothing) + counts.select(even, even.splat(0)) * (smoothing / double(classes));
  }
  return DivideOp::create(builder, loc, buildTotal(builder, loc, losses), buildTotal(builder, loc, own));
}

Value buildSoftCrossEntropyMean(OpBuilder &builder, Location loc, Value logits, Value labels, double smoothing,
                                ArrayRef<double> weights) {
  Term scores(builder, loc, widenScores(builder, logits));
  int64_t last = scores.getType().getRank() - 1, classes = scores.getShape().back();
  Term shares = scores.with(labels).convert(scores.getType().getElementType());
  if (smoothing != 0)
    shares = shares * (1 - smoothing) + smoothing / double(classes);
  if (!weights.empty())
    shares = shares * spreadWeights(scores, weights).broadcast({last}, scores.getShape());
  // Only its log sum e^z is read, for which any label will do.
  auto tokens = scores.getType().clone(scores.getShape().drop_back());
  Value first = buildSplat(builder, loc, RankedTensorType::get(tokens.getShape(), builder.getI64Type()), 0);
  auto sums = CrossEntropyOp::create(builder, loc, TypeRange{tokens, tokens}, scores, first, -100);
  Term losses = shares.reduce(ReduceKind::sum, last) * scores.with(sums.getLse()) -
                (shares * scores).reduce(ReduceKind::sum, last);
  return buildMean(builder, loc, losses);
}

namespace {

/// Operands of ONNX's losses over classes, which are dim 1 of the scores.
struct ClassLoss {
  Value scores, labels; ///< scores with their classes last
  std::optional<int64_t> ignore;
  StringRef reduction;

  RankedTensorType type() const { return cast<RankedTensorType>(scores.getType()); }
  RankedTensorType labelType() const { return cast<RankedTensorType>(labels.getType()); }
};

Value moveClassesLast(NodeImporter &importer, Value scores) {
  int64_t rank = cast<RankedTensorType>(scores.getType()).getRank();
  SmallVector<int64_t> order = otherDims(rank, {1});
  order.push_back(1);
  return rank == 2 ? scores : importer.transpose(scores, order);
}

FailureOr<ClassLoss> readClassLoss(NodeImporter &importer) {
  FailureOr<Value> scores = importer.tensor(0), labels = importer.tensor(1);
  if (failed(scores) || failed(labels))
    return failure();
  auto type = cast<RankedTensorType>(scores->getType()), labelType = cast<RankedTensorType>(labels->getType());
  bool fits = type.getRank() >= 2 && labelType.getRank() == type.getRank() - 1 &&
              isa<FloatType>(type.getElementType()) && labelType.getElementType().isSignlessInteger() &&
              labelType.getDimSize(0) == type.getDimSize(0);
  for (int64_t i = 2; i < type.getRank() && fits; ++i)
    fits = type.getDimSize(i) == labelType.getDimSize(i - 1);
  if (!fits)
    return importer.error() << "scores are " << type << ", labels " << labelType;
  ClassLoss loss{moveClassesLast(importer, *scores), *labels, {}, importer.node.stringAttribute("reduction", "mean")};
  if (importer.node.attribute("ignore_index"))
    loss.ignore = importer.node.intAttribute("ignore_index", 0);
  if (!llvm::is_contained({"mean", "sum", "none"}, loss.reduction))
    return importer.error() << "reduction is \"" << loss.reduction << "\", expected mean, sum or none";
  return loss;
}

/// Which labels count, as i1.
Term countingLabels(NodeImporter &importer, const ClassLoss &loss) {
  Term labels = termOf(importer, loss.labels);
  return labels.compare(Predicate::ne, double(loss.ignore.value_or(-100)));
}

/// Labels, 0 in place of those that do not count: indices of classes.
Term safeLabels(NodeImporter &importer, const ClassLoss &loss) {
  Term labels = termOf(importer, loss.labels);
  return loss.ignore ? countingLabels(importer, loss).select(labels, labels.splat(0)) : labels;
}

/// The weight of every label's loss: that of its class, 1 if classes have none; 0 if it is ignored.
FailureOr<Term> labelWeights(NodeImporter &importer, const ClassLoss &loss) {
  RankedTensorType type = loss.type().clone(loss.labelType().getShape());
  Term ones = termOf(importer, importer.splat(type, 1)), weights = ones;
  if (importer.has(2)) {
    FailureOr<Value> classes = importer.tensor(2);
    if (failed(classes))
      return failure();
    auto given = cast<RankedTensorType>(classes->getType());
    if (given != type.clone(ArrayRef<int64_t>(loss.type().getShape().back())))
      return importer.error() << "class weights are " << given << ", the scores have " << loss.type().getShape().back()
                              << " classes of " << type.getElementType();
    weights = ones.with(gatherAt(importer, *classes, safeLabels(importer, loss), 0));
  }
  return loss.ignore ? countingLabels(importer, loss).select(weights, weights.splat(0)) : weights;
}

/// Makes the losses of all labels, which are already weighted, the node's result.
LogicalResult bindReduced(NodeImporter &importer, const ClassLoss &loss, Value losses, Value weights) {
  if (loss.reduction == "none")
    return importer.bind(losses);
  Value sum = buildTotal(importer.builder, importer.loc, losses);
  if (loss.reduction == "mean")
    sum = DivideOp::create(importer.builder, importer.loc, sum, buildTotal(importer.builder, importer.loc, weights));
  return importer.bind(sum);
}

LogicalResult importNegativeLogLikelihoodLoss(NodeImporter &importer) {
  FailureOr<ClassLoss> loss = readClassLoss(importer);
  if (failed(loss))
    return failure();
  FailureOr<Term> weights = labelWeights(importer, *loss);
  if (failed(weights))
    return failure();
  SmallVector<int64_t> one(loss->labelType().getShape());
  one.push_back(1);
  Value labels = importer.reshape(safeLabels(importer, *loss), one);
  int64_t classes = loss->type().getRank() - 1;
  Value picked = takeAt(importer, loss->scores, labels, classes);
  Term losses = -weights->with(importer.reshape(picked, loss->labelType().getShape())) * *weights;
  return bindReduced(importer, *loss, losses, *weights);
}

/// Scores and labels whose leading dims the exporter merged are better left apart: the plain mean has a way
/// for it.
LogicalResult importSoftmaxCrossEntropyLoss(NodeImporter &importer) {
  FailureOr<ClassLoss> loss = readClassLoss(importer);
  if (failed(loss))
    return failure();
  OpBuilder &builder = importer.builder;
  if (importer.isUsed(1)) {
    int64_t last = loss->type().getRank() - 1;
    SmallVector<int64_t> order{0, last};
    llvm::append_range(order, dimRange(1, last));
    Term scores = termOf(importer, loss->scores);
    if (failed(importer.bind(importer.transpose(logSoftmax(scores, last), order), 1)))
      return failure();
  }
  int64_t ignore = loss->ignore.value_or(-100);
  auto asScores = [&](Value value) { return termOf(importer, value).convert(loss->type().getElementType()); };
  if (!importer.has(2) && loss->reduction == "mean")
    return importer.bind(asScores(buildCrossEntropyMean(builder, importer.loc, loss->scores, loss->labels, ignore)));
  Value losses = asScores(buildCrossEntropy(builder, importer.loc, loss->scores, loss->labels, ignore));
  FailureOr<Term> weights = labelWeights(importer, *loss);
  if (failed(weights))
    return failure();
  if (importer.has(2))
    losses = weights->with(losses) * *weights;
  return bindReduced(importer, *loss, losses, *weights);
}

} // namespace

void addLossImports(ImportTable &table) {
  table["NegativeLogLikelihoodLoss"] = importNegativeLogLikelihoodLoss;
  table["SoftmaxCrossEntropyLoss"] = importSoftmaxCrossEntropyLoss;
}

} // namespace par
