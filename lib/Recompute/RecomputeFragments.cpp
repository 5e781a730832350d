#include "Keeping.h"

#include "par/Recompute/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_RECOMPUTEFRAGMENTSPASS
#include "par/Recompute/Passes.h.inc"

namespace {

/// Moves the computation of residuals from one forward fragment into the backward fragment that takes them.
class PairRewriter {
public:
  PairRewriter(RunPair pair, const Keeping &keeping)
      : forward(pair.forward), backward(pair.backward), keeping(keeping), source(fragmentOf(forward)),
        target(fragmentOf(backward)) {}

  void run();

private:
  void findSlice();
  void collect(Value value);
  void cloneSlice();
  void dropReplaced();

  /// What the forward body returns as result `index`.
  Value returned(unsigned index) { return source.getTerminator()->getOperand(index); }
  bool isKept(Value value) { return resultOf.count(value) && keeping.keeps(value); }
  Value argumentFor(Value outer, Type localType);

  RunOp forward, backward;
  const Keeping &keeping;
  FragmentOp source, target;
  llvm::DenseMap<Value, unsigned> resultOf;   ///< forward body values that are results already
  SmallVector<unsigned> replaced;             ///< backward operands to be computed again
  llvm::SetVector<Operation *> slice;         ///< forward ops to be cloned
  llvm::SetVector<Value> needed;              ///< arguments and kept values that the clones read
};

} // namespace

/// Adds what computes `value`, back to arguments and kept values.
void PairRewriter::collect(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isKept(value)) {
    needed.insert(value);
    return;
  }
  if (!slice.insert(op))
    return;
  for (Value operand : op->getOperands())
    collect(operand);
}

void PairRewriter::findSlice() {
  for (auto [index, value] : llvm::enumerate(source.getTerminator()->getOperands()))
    resultOf.try_emplace(value, index);
  for (auto [index, operand] : llvm::enumerate(backward.getOperands()))
    if (operand.getDefiningOp<RunOp>() == forward) {
      Value value = returned(cast<OpResult>(operand).getResultNumber());
      if (isKept(value))
        continue;
      replaced.push_back(index);
      collect(value);
    }
}

/// The argument of the backward fragment that stands for a step value; added where there is none.
Value PairRewriter::argumentFor(Value outer, Type localType) {
  for (auto [index, operand] : llvm::enumerate(backward.getOperands()))
    if (operand == outer && !llvm::is_contained(replaced, index))
      return target.getBlock().getArgument(index);
  backward->insertOperands(backward.getNumOperands(), outer);
  return target.getBlock().addArgument(localType, backward.getLoc());
}

/// Clones the slice to the front of the backward body, in the order of the forward body.
void PairRewriter::cloneSlice() {
  IRMapping mapping;
  for (Value value : needed) {
    auto argument = dyn_cast<BlockArgument>(value);
    Value outer = argument ? forward.getOperand(argument.getArgNumber()) : forward.getResult(resultOf[value]);
    mapping.map(value, argumentFor(outer, value.getType()));
  }
  OpBuilder builder = OpBuilder::atBlockBegin(&target.getBlock());
  for (Operation &op : source.getBlock())
    if (slice.contains(&op))
      builder.clone(op, mapping);
  for (unsigned index : replaced) {
    Value value = returned(cast<OpResult>(backward.getOperand(index)).getResultNumber());
    target.getBlock().getArgument(index).replaceAllUsesWith(mapping.lookup(value));
  }
}

/// Takes away the backward arguments that were replaced.
void PairRewriter::dropReplaced() {
  llvm::BitVector gone(backward.getNumOperands());
  for (unsigned index : replaced)
    gone.set(index);
  backward->eraseOperands(gone);
  target.getBlock().eraseArguments(gone);
  Block &body = target.getBlock();
  target.setFunctionType(FunctionType::get(target.getContext(), body.getArgumentTypes(),
                                           body.getTerminator()->getOperandTypes()));
}

void PairRewriter::run() {
  findSlice();
  if (replaced.empty())
    return;
  cloneSlice();
  dropReplaced();
}

/// Takes away results of a forward run that nobody uses, and the ops that only they needed.
static void dropUnusedResults(RunOp run) {
  FragmentOp fragment = fragmentOf(run);
  Operation *terminator = fragment.getTerminator();
  llvm::BitVector unused(run.getNumResults());
  SmallVector<Type> types;
  for (OpResult result : run.getResults()) {
    if (result.use_empty())
      unused.set(result.getResultNumber());
    else
      types.push_back(result.getType());
  }
  if (unused.none())
    return;
  terminator->eraseOperands(unused);
  SmallVector<Operation *> ops;
  for (Operation &op : fragment.getBlock().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
  Block &body = fragment.getBlock();
  fragment.setFunctionType(
      FunctionType::get(fragment.getContext(), body.getArgumentTypes(), terminator->getOperandTypes()));
  OpBuilder builder(run);
  auto slim = RunOp::create(builder, run.getLoc(), types, run.getFragmentAttr(), run.getOperands());
  unsigned next = 0;
  for (OpResult result : run.getResults())
    if (!unused.test(result.getResultNumber()))
      result.replaceAllUsesWith(slim.getResult(next++));
  run.erase();
}

namespace {
struct RecomputeFragmentsPass : impl::RecomputeFragmentsPassBase<RecomputeFragmentsPass> {
  using RecomputeFragmentsPassBase::RecomputeFragmentsPassBase;

  void runOnOperation() override {
    FailureOr<Keeping> keeping = Keeping::parse(getOperation(), mode, each);
    if (failed(keeping))
      return signalPassFailure();
    for (StepOp step : getOperation().getOps<StepOp>()) {
      if (!keeping->isNone())
        for (RunPair pair : findPairs(step))
          PairRewriter(pair, *keeping).run();
      SmallVector<RunOp> forwards;
      step.walk([&](RunOp run) {
        if (fragmentOf(run).getKind() == FragmentKind::forward)
          forwards.push_back(run);
      });
      for (RunOp run : forwards)
        dropUnusedResults(run);
    }
  }
};
} // namespace

void buildRecomputePipeline(OpPassManager &manager, const PlanRecompute &recompute) {
  RecomputeFragmentsPassOptions options;
  static constexpr const char *modes[] = {"none", "full", "each"};
  options.mode = modes[*recompute.kind];
  if (recompute.each)
    options.each = recompute.each->pattern.text().str();
  manager.addPass(createRecomputeFragmentsPass(options));
  manager.addPass(createVerifyRecomputePass(VerifyRecomputePassOptions{options.mode, options.each}));
}

} // namespace par
