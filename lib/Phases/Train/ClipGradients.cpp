// Returns the norm of all gradients, and clips by it or by their elements (torch.nn.utils).
#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

#include <limits>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CLIPGRADIENTSPASS
#include "par/Phases/Train/Passes.h.inc"

/// The value that updates read: the gradient, or the gradient times the inverse loss scale.
static Value findRead(GradientOp gradient) {
  auto scaled = gradient->hasOneUse() ? dyn_cast<MultiplyOp>(*gradient->getUsers().begin()) : MultiplyOp();
  return scaled ? scaled.getResult() : gradient.getResult();
}

/// 0 if the loss is finite, else infinity.
static Value testLoss(StepOp step, OpBuilder &builder) {
  auto cotangents = step.getBlock().getOps<CotangentOp>();
  if (cotangents.empty())
    return {};
  CotangentOp cotangent = *cotangents.begin();
  Location loc = cotangent.getLoc();
  Term loss(builder, loc, buildConvert(builder, loc, cotangent.getOperand(0), builder.getF32Type()));
  Term finite = loss.with(IsFiniteOp::create(builder, loc, loss));
  return finite.select(loss.splat(0), loss.splat(std::numeric_limits<double>::infinity()));
}

/// The sum of all squares, once for each gradient: they are separate scalars until stages are known. `more` is added to
/// them.
static SmallVector<Term> sumSquares(ArrayRef<Value> gradients, Value more, OpBuilder &builder) {
  SmallVector<Value> squares;
  for (Value gradient : gradients) {
    Term g(builder, gradient.getLoc(), gradient);
    Term sum = (g * g).reduce(ReduceKind::sum, dimRange(0, g.getType().getRank()));
    squares.push_back(sum.convert(builder.getF32Type()));
  }
  if (more)
    squares.push_back(more);
  Location loc = gradients.front().getDefiningOp()->getParentOp()->getLoc();
  auto whole = StageAllReduceOp::create(builder, loc, ValueRange(squares).getTypes(), ReduceKind::sum, squares);
  return llvm::map_to_vector(whole.getResults(), [&](Value value) { return Term(builder, loc, value); });
}

/// The threshold, which the host may set between steps.
static FailureOr<Value> readThreshold(StepOp step, double clip, OpBuilder &builder) {
  auto module = step->getParentOfType<ModuleOp>();
  if (Operation *taken = module.lookupSymbol("clip")) {
    InFlightDiagnostic error = step.emitError() << "training needs a variable @clip of its own";
    error.attachNote(taken->getLoc()) << "the name is taken here";
    return error;
  }
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  OpBuilder outside(*module.getOps<StepOp>().begin());
  VariableOp::create(outside, step.getLoc(), "clip", VariableKind::hyperparameter, FlatSymbolRefAttr(), scalar,
                     TypeAttr(), ShardingAttr(), ArrayAttr(), DenseElementsAttr::get(scalar, static_cast<float>(clip)),
                     StringAttr(), DictionaryAttr());
  return Value(ReadOp::create(builder, step.getLoc(), scalar, "clip"));
}

/// A scalar at every element of the gradient, in its format.
static Term spread(Term scalar, Term gradient) {
  return scalar.convert(gradient.getType().getElementType()).broadcast(gradient.getShape());
}

/// `norm`'s share of the gradient.
static Value clipNorm(Term gradient, Term norm, Term threshold) {
  Term coefficient = threshold / (norm + 1e-6);
  return gradient * spread(minimum(coefficient, coefficient.splat(1)), gradient);
}

/// The gradient's elements, clamped to the threshold; NaN stays.
static Value clipElements(Term gradient, Term threshold) {
  Term most = spread(threshold, gradient);
  return MaximumOp::create(gradient.getBuilder(), gradient.getLoc(), minimum(gradient, most), -most);
}

/// Users of each gradient after the last gradient: the updates. Called before anything is built, since isBeforeInBlock
/// renumbers the whole step after each inserted op.
static SmallVector<SmallVector<Operation *>> findUpdates(ArrayRef<Value> gradients) {
  Operation *last = gradients.back().getDefiningOp();
  return llvm::map_to_vector(gradients, [&](Value gradient) {
    return SmallVector<Operation *>(
        llvm::make_filter_range(gradient.getUsers(), [&](Operation *user) { return last->isBeforeInBlock(user); }));
  });
}

/// Adds a result after the others.
static void addResult(StepOp step, Value value, StringRef name) {
  Operation *terminator = step.getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
  Builder builder(step.getContext());
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(), terminator->getOperandTypes()));
  SmallVector<Attribute> names;
  if (ArrayAttr outputs = step.getOutputsAttr())
    llvm::append_range(names, outputs);
  names.push_back(builder.getStringAttr(name));
  step.setOutputsAttr(builder.getArrayAttr(names));
}

/// Checks that no threshold is negative and at most one is above 0.
static LogicalResult verifyThresholds(StepOp step, double clip, double value) {
  if (clip < 0 || value < 0)
    return step.emitOpError() << "has the clipping " << (clip < 0 ? "norm " : "value ") << std::min(clip, value)
                              << ", expected a positive number";
  if (clip > 0 && value > 0)
    return step.emitOpError() << "has both a clipping norm, " << clip << ", and a clipping value, " << value;
  return success();
}

static LogicalResult clipGradients(StepOp step, double clip, double value, bool withNorm, bool withLoss) {
  if (failed(verifyThresholds(step, clip, value)))
    return failure();
  SmallVector<Value> gradients;
  for (auto gradient : step.getBlock().getOps<GradientOp>())
    gradients.push_back(findRead(gradient));
  if (gradients.empty())
    return success();
  SmallVector<SmallVector<Operation *>> updates = findUpdates(gradients);
  // Updates come after all gradients; so do the ops built here.
  OpBuilder builder(step.getContext());
  builder.setInsertionPointAfter(gradients.back().getDefiningOp());
  SmallVector<Term> sums;
  std::optional<Term> norm;
  if (withNorm || clip > 0) {
    sums = sumSquares(gradients, withLoss ? testLoss(step, builder) : Value(), builder);
    norm = sqrt(sums.front());
    addResult(step, *norm, "grad_norm");
  }
  if (clip == 0 && value == 0)
    return success();
  FailureOr<Value> read = readThreshold(step, std::max(clip, value), builder);
  if (failed(read))
    return failure();
  for (auto [index, gradient] : llvm::enumerate(gradients)) {
    Term g(builder, gradient.getLoc(), gradient), threshold = g.with(*read);
    Term own = value > 0 ? threshold : index == 0 ? *norm : sqrt(sums[index]);
    gradient.replaceUsesWithIf(value > 0 ? clipElements(g, threshold) : clipNorm(g, own, threshold),
                               [&](OpOperand &use) { return llvm::is_contained(updates[index], use.getOwner()); });
  }
  return success();
}

namespace {
struct ClipGradientsPass : impl::ClipGradientsPassBase<ClipGradientsPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    if (step && failed(clipGradients(step, clip, value, norm, loss)))
      signalPassFailure();
  }
};
} // namespace

} // namespace par
