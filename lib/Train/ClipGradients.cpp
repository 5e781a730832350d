#include "par/Dialect/Term.h"
#include "par/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CLIPGRADIENTSPASS
#include "par/Train/Passes.h.inc"

/// What updates read of a gradient: of a scaled one its product with the inverse scale.
static Value findRead(GradientOp gradient) {
  auto scaled = gradient->hasOneUse() ? dyn_cast<MultiplyOp>(*gradient->getUsers().begin()) : MultiplyOp();
  return scaled ? scaled.getResult() : gradient.getResult();
}

/// The sum of all squares once a gradient: each is a scalar of its own until stages are known.
static SmallVector<Term> sumSquares(ArrayRef<Value> gradients, OpBuilder &builder) {
  SmallVector<Value> squares;
  for (Value gradient : gradients) {
    Term g(builder, gradient.getLoc(), gradient);
    Term sum = (g * g).reduce(ReduceKind::sum, dimRange(0, g.getType().getRank()));
    squares.push_back(sum.convert(builder.getF32Type()));
  }
  Location loc = gradients.front().getDefiningOp()->getParentOp()->getLoc();
  auto whole = StageReduceOp::create(builder, loc, ValueRange(squares).getTypes(), ReduceKind::sum, squares);
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
  VariableOp::create(outside, step.getLoc(), "clip", VariableKind::hyper, FlatSymbolRefAttr(), scalar,
                     TypeAttr(), ShardingAttr(), ArrayAttr(),
                     DenseElementsAttr::get(scalar, static_cast<float>(clip)), StringAttr(),
                     DictionaryAttr());
  return Value(ReadOp::create(builder, step.getLoc(), scalar, "clip"));
}

/// Everything that used the gradient uses `norm`'s share of it.
static void clipGradient(Value gradient, Term norm, Value threshold) {
  Term coefficient = norm.with(threshold) / (norm + 1e-6);
  coefficient = minimum(coefficient, coefficient.splat(1));
  Term g(norm.getBuilder(), gradient.getLoc(), gradient);
  Value clipped = g * coefficient.convert(g.getType().getElementType()).broadcast(g.getShape());
  // The uses so far behind it are the updates'; those before it make the norm.
  Operation *last = clipped.getDefiningOp();
  gradient.replaceUsesWithIf(
      clipped, [&](OpOperand &use) { return last->isBeforeInBlock(use.getOwner()); });
}

/// Adds a result behind the others.
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

static LogicalResult clipGradients(StepOp step, double clip) {
  if (clip < 0)
    return step.emitOpError() << "has the clipping norm " << clip << ", expected a positive number";
  SmallVector<Value> gradients;
  for (auto gradient : step.getBlock().getOps<GradientOp>())
    gradients.push_back(findRead(gradient));
  if (gradients.empty())
    return success();
  // Updates stand behind all gradients, so what is built here does too.
  OpBuilder builder(step.getContext());
  builder.setInsertionPointAfter(gradients.back().getDefiningOp());
  SmallVector<Term> sums = sumSquares(gradients, builder);
  Term norm = sqrt(sums.front());
  addResult(step, norm, "grad_norm");
  if (clip == 0)
    return success();
  FailureOr<Value> threshold = readThreshold(step, clip, builder);
  if (failed(threshold))
    return failure();
  for (auto [gradient, sum] : llvm::zip(gradients, sums))
    clipGradient(gradient, gradient == gradients.front() ? norm : sqrt(sum), *threshold);
  return success();
}

namespace {
struct ClipGradientsPass : impl::ClipGradientsPassBase<ClipGradientsPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    if (step && failed(clipGradients(step, clip)))
      signalPassFailure();
  }
};
} // namespace

} // namespace par
