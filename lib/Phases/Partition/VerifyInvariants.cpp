// Gate: a value that is the same in all microbatches is gathered where and as often as the plan says. Follows each
// value through the step with the ranks and microbatches that its elements come from.
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Partition/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYINVARIANTSPASS
#include "par/Phases/Partition/Passes.h.inc"

namespace {

/// The origin of a value. Ranks agree on it; microbatches agree on a value that no data flows into.
struct Made {
  bool ofData = false;         ///< of inputs, of the microbatch's index, or of a loop's sum
  bool ofVariables = false;    ///< of at least one
  bool ofOne = false;          ///< one variable's elements, unchanged or converted one by one
  Operation *gather = nullptr; ///< that joined these elements over ranks
};

/// Follows values through one step and the fragments that it runs, each op once for each run.
class InvariantGathers {
public:
  InvariantGathers(StepOp step, const SymbolTable &symbols, ArrayRef<std::string> axes, bool once)
      : step(step), symbols(symbols), axes(axes), once(once) {}

  LogicalResult verify();

private:
  LogicalResult follow(Operation *op, bool inLoop);
  LogicalResult followRun(RunOp run, bool inLoop);
  LogicalResult verifyInLoop(Operation *op, const Made &made);
  Made combine(Operation *op);
  bool isOverSpreadAxes(Operation *op);
  LogicalResult verifyUse(Operation *op, Value operand);

  StepOp step;
  const SymbolTable &symbols;
  ArrayRef<std::string> axes;
  bool once;
  DenseMap<Value, Made> known;
};

} // namespace

/// Gathers unchanged elements from several ranks. A sum over ranks is different: it computes, and belongs where its
/// terms are computed.
static bool gathers(Operation *op) { return isa<AllGatherOp, AllToAllOp>(op); }

/// Each element of the result is one of the operand's, unchanged or converted.
static bool keepsElements(Operation *op) {
  return op->getNumOperands() == 1 && (op->hasTrait<OpTrait::Elementwise>() || gathers(op) || getCost(op).flops == 0);
}

Made InvariantGathers::combine(Operation *op) {
  Made made;
  made.ofOne = keepsElements(op);
  for (Value operand : op->getOperands()) {
    Made from = known.lookup(operand);
    made.ofData |= from.ofData;
    made.ofVariables |= from.ofVariables;
    made.ofOne &= from.ofOne;
    made.gather = from.gather;
  }
  if (!made.ofOne)
    made.gather = nullptr;
  else if (gathers(op) && isOverSpreadAxes(op))
    made.gather = op;
  return made;
}

bool InvariantGathers::isOverSpreadAxes(Operation *op) {
  return llvm::any_of(cast<CollectiveOpInterface>(op).getAxes().getAsRange<StringAttr>(),
                      [&](StringAttr axis) { return llvm::is_contained(axes, axis.getValue()); });
}

/// An error for a gather in the loop of a value that all microbatches share, if the plan gathers those before the loop.
LogicalResult InvariantGathers::verifyInLoop(Operation *op, const Made &made) {
  if (!once || !gathers(op) || made.ofData || !made.ofVariables || !isOverSpreadAxes(op))
    return success();
  InFlightDiagnostic error = op->emitError()
                             << "gathers values of variables in each microbatch, which the plan gathers once a "
                                "step (zero.gather: step)";
  error.attachNote(step.getLoc()) << "in the loop of @" << step.getSymName();
  return error;
}

LogicalResult InvariantGathers::followRun(RunOp run, bool inLoop) {
  auto fragment = symbols.lookup<FragmentOp>(run.getFragment());
  for (auto [argument, operand] : llvm::zip(fragment.getArguments(), run.getOperands()))
    known[argument] = known.lookup(operand);
  for (Operation &op : fragment.getBlock().without_terminator()) {
    Made made = combine(&op);
    if (inLoop && failed(verifyInLoop(&op, made)))
      return failure();
    for (Value result : op.getResults())
      known[result] = made;
  }
  for (auto [result, inner] : llvm::zip(run.getResults(), fragment.getTerminator()->getOperands()))
    known[result] = known.lookup(inner);
  return success();
}

/// An error for a gathered variable that the loop takes from before it, or that one of its fragments takes from another
/// (a backward from its forward, for each microbatch in flight).
LogicalResult InvariantGathers::verifyUse(Operation *op, Value operand) {
  Operation *gather = known.lookup(operand).gather;
  if (!gather)
    return success();
  bool handedOn = operand.getParentBlock() == op->getBlock();
  InFlightDiagnostic error = gather->emitError();
  if (handedOn)
    error << "gathers a variable that a later fragment takes, though the plan gathers it for each use (zero.gather: "
             "use), and "
             "keeps it whole until then";
  else
    error
        << "gathers a variable before the loop, though the plan gathers it for each use (zero.gather: use), and keeps "
           "it whole "
           "for all microbatches";
  error.attachNote(op->getLoc()) << "used here, in the loop of @" << step.getSymName();
  return error;
}

LogicalResult InvariantGathers::follow(Operation *op, bool inLoop) {
  if (inLoop && !once)
    for (Value operand : op->getOperands())
      if (failed(verifyUse(op, operand)))
        return failure();
  if (auto run = dyn_cast<RunOp>(op))
    return followRun(run, inLoop);
  Made made;
  if (isa<ReadOp>(op)) {
    made.ofVariables = made.ofOne = true;
  } else if (isa<TransferOp>(op)) {
    made = known.lookup(op->getOperand(0));
    made.gather = nullptr; // made for the way: shards of the two stages must make up each other
  } else {
    made.ofData = true;
  }
  for (Value result : op->getResults())
    known[result] = made;
  return success();
}

LogicalResult InvariantGathers::verify() {
  Made data;
  data.ofData = true;
  for (Value argument : step.getBlock().getArguments())
    known[argument] = data;
  for (Operation &op : step.getBlock()) {
    auto loop = dyn_cast<LoopOp>(op);
    if (loop) {
      for (Value argument : loop.getBody().getArguments())
        known[argument] = data;
      for (Operation &inner : loop.getBody().front().without_terminator())
        if (failed(follow(&inner, /*inLoop=*/true)))
          return failure();
    }
    if (failed(follow(&op, /*inLoop=*/false)))
      return failure();
  }
  return success();
}

namespace {
struct VerifyInvariantsPass : impl::VerifyInvariantsPassBase<VerifyInvariantsPass> {
  using VerifyInvariantsPassBase::VerifyInvariantsPassBase;

  /// Whether the plan itself shards a variable over the axis. Propagation carries it to others, which then cannot be
  /// told from values sharded over further axes.
  bool isLaidByPlan(StringRef axis) {
    return llvm::any_of(getOperation().getOps<VariableOp>(), [&](VariableOp variable) {
      return variable.getSharding() && variable.getSharding()->uses(StringAttr::get(&getContext(), axis));
    });
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<std::string> axes(parameterAxes.begin(), parameterAxes.end());
    llvm::erase_if(axes, [&](const std::string &axis) { return isLaidByPlan(axis); });
    for (StepOp step : getOperation().getOps<StepOp>())
      if (failed(InvariantGathers(step, symbols, axes, gatherOnce && !axes.empty()).verify()))
        return signalPassFailure();
  }
};
} // namespace

} // namespace par
