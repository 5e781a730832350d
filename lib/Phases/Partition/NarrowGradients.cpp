// Sums gradients in another format than f32: over microbatches (a loop's accumulators) and over ranks (collectives).
// Both are explicit after Partition, so that no earlier pass knows of formats:
//
//     in a fragment whose result a loop accumulates          after the loop
//       %s = par.reduce_scatter sum %d : f32                   par.run @reduce(%g), whose result the update takes
//
// A format for sums over ranks is converted to and from around the collectives of a gradient; one for sums over
// microbatches is the format of the loop's result. The result of a collective after a loop stays narrow until the
// update reads it: the update's kernel widens it, and no rank waits for the collective before that.
//
// It does not change other sums: activations over tensor axes, the loss, norms.
#include "par/Phases/Partition/Passes.h"

#include "par/Dialect/Par.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_NARROWGRADIENTSPASS
#include "par/Phases/Partition/Passes.h.inc"

namespace {

/// The gradients of one step.
class Gradients {
public:
  Gradients(StepOp step, FloatType accumulated, FloatType reduced)
      : step(step), symbols(step->getParentOfType<ModuleOp>()), accumulated(accumulated), reduced(reduced) {}

  LogicalResult run();

private:
  LogicalResult narrow(LoopOp loop, unsigned number);
  FragmentOp fragmentOf(RunOp run) { return symbols.lookup<FragmentOp>(run.getFragment()); }
  LogicalResult checkOwn(RunOp run);
  void giveAs(OpResult result, FloatType format);
  void takeAs(OpOperand &operand);
  bool reduceIn(RunOp run, unsigned result);
  LogicalResult follow(Value value, bool narrowed);
  LogicalResult followReduction(OpOperand &operand, bool narrowed);

  StepOp step;
  SymbolTable symbols;
  FloatType accumulated, reduced; ///< null: f32, unchanged
  llvm::StringMap<RunOp> runs;    ///< by fragment
};

} // namespace

static Type withElement(Type type, Type element) {
  if (auto dist = dyn_cast<DistType>(type))
    return DistType::get(type.getContext(), dist.getTensor().clone(element), dist.getStage(), dist.getSharding());
  return cast<RankedTensorType>(type).clone(element);
}

/// The value in that format; for a value widened from it, the operand of the convert, which is exact.
static Value convertTo(OpBuilder &builder, Value value, Type format) {
  if (auto convert = value.getDefiningOp<ConvertOp>())
    if (cast<RankedTensorType>(convert.getOperand().getType()).getElementType() == format)
      return convert.getOperand();
  return buildConvert(builder, value.getLoc(), value, format);
}

static void setType(FragmentOp fragment) {
  fragment.setFunctionType(FunctionType::get(fragment.getContext(), fragment.getBlock().getArgumentTypes(),
                                             fragment.getTerminator()->getOperandTypes()));
}

/// A fragment whose types change is run at one place.
LogicalResult Gradients::checkOwn(RunOp run) {
  RunOp known = runs.try_emplace(run.getFragment(), run).first->second;
  if (known == run)
    return success();
  return run.emitOpError() << "runs @" << run.getFragment()
                           << ", as another place does, and its gradients change their type";
}

/// Rounds the result inside the fragment.
void Gradients::giveAs(OpResult result, FloatType format) {
  FragmentOp fragment = fragmentOf(cast<RunOp>(result.getOwner()));
  OpOperand &returned = fragment.getTerminator()->getOpOperand(result.getResultNumber());
  OpBuilder builder(fragment.getTerminator());
  returned.set(convertTo(builder, returned.get(), format));
  setType(fragment);
  result.setType(withElement(result.getType(), format));
}

/// Widens the operand inside the fragment.
void Gradients::takeAs(OpOperand &operand) {
  FragmentOp fragment = fragmentOf(cast<RunOp>(operand.getOwner()));
  BlockArgument argument = fragment.getBlock().getArgument(operand.getOperandNumber());
  auto type = cast<RankedTensorType>(argument.getType());
  Type format = cast<DistType>(operand.get().getType()).getTensor().getElementType();
  if (type.getElementType() == format)
    return;
  argument.setType(type.clone(format));
  OpBuilder builder(fragment.getContext());
  builder.setInsertionPointToStart(&fragment.getBlock());
  Value wide = ConvertOp::create(builder, argument.getLoc(), type, argument);
  argument.replaceAllUsesExcept(wide, wide.getDefiningOp());
  setType(fragment);
}

static bool isSum(Operation *op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getKind() == ReduceKind::sum && op->getNumOperands() == 1;
  auto scatter = dyn_cast<ReduceScatterOp>(op);
  return scatter && scatter.getKind() == ReduceKind::sum && op->getNumOperands() == 1;
}

/// Combines in another format.
static void sumIn(Operation *op, FloatType format) {
  OpBuilder builder(op);
  Value result = op->getResult(0);
  Type wide = cast<RankedTensorType>(result.getType()).getElementType();
  op->setOperand(0, convertTo(builder, op->getOperand(0), format));
  result.setType(withElement(result.getType(), format));
  builder.setInsertionPointAfter(op);
  Value again = buildConvert(builder, op->getLoc(), result, wide);
  result.replaceAllUsesExcept(again, again.getDefiningOp());
}

/// The sums over ranks that a value consists of, through ops that move elements or add such values, each without other
/// users.
static void collectSums(Value value, SmallVectorImpl<Operation *> &sums) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse() || op->getNumResults() != 1)
    return;
  if (isSum(op))
    return sums.push_back(op);
  auto isSame = [&](Value operand) {
    return getElementTypeOrSelf(operand.getType()) == getElementTypeOrSelf(value.getType());
  };
  if (op->getNumOperands() == 1 || isa<AddOp>(op))
    for (Value operand : op->getOperands())
      if (isSame(operand))
        collectSums(operand, sums);
}

/// Whether a run's result consists of sums over ranks; these are then in their format.
bool Gradients::reduceIn(RunOp run, unsigned result) {
  SmallVector<Operation *> sums;
  collectSums(fragmentOf(run).getTerminator()->getOperand(result), sums);
  for (Operation *sum : sums)
    if (reduced)
      sumIn(sum, reduced);
  return !sums.empty();
}

/// After its loop a gradient goes through layout ops, and to other stages, into updates.
LogicalResult Gradients::follow(Value value, bool narrowed) {
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    if (auto transfer = dyn_cast<TransferOp>(use.getOwner())) {
      Type element = cast<DistType>(value.getType()).getTensor().getElementType();
      transfer.getResult().setType(cast<DistType>(withElement(transfer.getType(), element)));
      if (failed(follow(transfer.getResult(), narrowed)))
        return failure();
    } else if (auto run = dyn_cast<RunOp>(use.getOwner())) {
      bool lays = fragmentOf(run).getKind() == FragmentKind::reduce;
      if (lays ? failed(followReduction(use, narrowed)) : narrowed && failed(checkOwn(run)))
        return failure();
      if (!lays && narrowed)
        takeAs(use);
    } else if (narrowed) {
      return use.getOwner()->emitOpError() << "takes a gradient, whose type changes";
    }
  }
  return success();
}

LogicalResult Gradients::followReduction(OpOperand &operand, bool narrowed) {
  auto run = cast<RunOp>(operand.getOwner());
  if (run.getNumResults() != 1 || run.getNumOperands() != 1)
    return run.emitOpError() << "changes the layout of several values";
  if (failed(checkOwn(run)))
    return failure();
  if (narrowed)
    takeAs(operand);
  bool sums = reduceIn(run, 0);
  FloatType kept = accumulated ? accumulated : reduced;
  narrowed |= sums && reduced;
  if (narrowed)
    giveAs(run->getResult(0), kept);
  return follow(run.getResult(0), narrowed);
}

/// Narrows one result of a loop: the sums over ranks in its body, its accumulator, and its users.
LogicalResult Gradients::narrow(LoopOp loop, unsigned number) {
  OpOperand &yielded = loop.getBody().front().getTerminator()->getOpOperand(number);
  auto made = dyn_cast<OpResult>(yielded.get());
  auto run = made ? dyn_cast<RunOp>(made.getOwner()) : RunOp();
  if (!run)
    return loop.emitOpError() << "accumulates a gradient that no run makes";
  if (failed(checkOwn(run)))
    return failure();
  reduceIn(run, made.getResultNumber());
  if (!accumulated)
    return follow(loop.getResult(number), false);
  if (!made.hasOneUse())
    return loop.emitOpError() << "accumulates a gradient that is used in it";
  giveAs(made, accumulated);
  loop.getResult(number).setType(withElement(loop.getResult(number).getType(), accumulated));
  return follow(loop.getResult(number), true);
}

LogicalResult Gradients::run() {
  SmallVector<std::pair<LoopOp, unsigned>> sums;
  step.walk([&](LoopOp loop) {
    for (auto [number, label] : llvm::enumerate(loop.getLabels().value_or(ArrayAttr())))
      if (!cast<StringAttr>(label).getValue().empty() &&
          cast<DistType>(loop.getResult(number).getType()).getTensor().getElementType().isF32())
        sums.push_back({loop, unsigned(number)});
  });
  for (auto [loop, number] : sums)
    if (failed(narrow(loop, number)))
      return failure();
  return success();
}

namespace {
struct NarrowGradientsPass : impl::NarrowGradientsPassBase<NarrowGradientsPass> {
  using Base::Base;

  /// Null for f32.
  FailureOr<FloatType> formatOf(StringRef word) {
    if (word == "f32")
      return FloatType();
    if (word == "bf16")
      return FloatType(BFloat16Type::get(&getContext()));
    return getOperation().emitError() << "sums gradients in \"" << word << "\", expected f32 or bf16";
  }

  void runOnOperation() override {
    FailureOr<FloatType> ofLoops = formatOf(accumulate), ofRanks = formatOf(reduce);
    if (failed(ofLoops) || failed(ofRanks))
      return signalPassFailure();
    for (StepOp step : getOperation().getOps<StepOp>())
      if ((*ofLoops || *ofRanks) && failed(Gradients(step, *ofLoops, *ofRanks).run()))
        return signalPassFailure();
  }
};
} // namespace

} // namespace par
