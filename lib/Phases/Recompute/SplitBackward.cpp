// Splits backward into two parts, for schedules that run weight gradients in slots of their own (Qi et al. 2024): the
// values that another stage waits for, and the rest, which only reaches sums. Runs after recomputation, which has seen
// both parts as one: a value is recomputed once, and the weight part takes it from the first part.
#include "FragmentPair.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Recompute/Passes.h"
#include "par/Solver/Order/OrderTable.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "par/Phases/Recompute/Passes.h.inc"

namespace {

/// Splits the run of one backward, and its fragment.
class BackwardSplitter {
public:
  BackwardSplitter(RunOp run, FragmentOp fragment) : run(run), fragment(fragment) {}

  void split();

private:
  void findAwaited();
  bool isCheap(Value value);
  Value take(Value value);
  void moveWeights();
  void rebuildRuns();

  RunOp run;
  FragmentOp fragment, weight;
  llvm::DenseSet<Operation *> awaited;     ///< ops that reach another stage
  llvm::DenseMap<Operation *, bool> cheap; ///< memo of isCheap(), since chains share operands at every step
  SmallVector<unsigned> first, later;      ///< results of either part
  llvm::SetVector<Value> residuals;        ///< results of the first part that the second takes
  IRMapping mapping;                       ///< into the weight part
  SmallVector<Value> taken;                ///< its arguments as values of the first part
};

} // namespace

/// Whether a result of a loop's run reaches nothing but the loop's sums.
static bool isSummedOnly(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<YieldOp>(user))
      return true;
    auto run = dyn_cast<RunOp>(user);
    auto fragment = run ? SymbolTable::lookupNearestSymbolFrom<FragmentOp>(run, run.getFragmentAttr()) : FragmentOp();
    return fragment && fragment.getKind() == FragmentKind::reduce && llvm::all_of(run.getResults(), isSummedOnly);
  });
}

void BackwardSplitter::findAwaited() {
  Operation *results = fragment.getTerminator();
  for (OpResult result : run.getResults())
    (isSummedOnly(result) ? later : first).push_back(result.getResultNumber());
  SmallVector<Value> work;
  for (unsigned index : first)
    work.push_back(results->getOperand(index));
  while (!work.empty())
    if (Operation *source = work.pop_back_val().getDefiningOp(); source && awaited.insert(source).second)
      llvm::append_range(work, source->getOperands());
}

/// Cheap values fuse into their readers and depend only on values that both parts have; they are recomputed.
bool BackwardSplitter::isCheap(Value value) {
  Operation *source = value.getDefiningOp();
  if (!source)
    return true;
  if (auto known = cheap.find(source); known != cheap.end())
    return known->second;
  bool is =
      getCost(source).fusable && llvm::all_of(source->getOperands(), [&](Value operand) { return isCheap(operand); });
  return cheap[source] = is;
}

/// A value of the first part in the second: made again there, or an argument.
Value BackwardSplitter::take(Value value) {
  if (Value there = mapping.lookupOrNull(value))
    return there;
  Operation *source = value.getDefiningOp();
  if (source && awaited.contains(source) && !isCheap(value)) {
    residuals.insert(value);
    source = nullptr;
  }
  if (!source) {
    taken.push_back(value);
    Value argument = weight.getBlock().addArgument(value.getType(), value.getLoc());
    mapping.map(value, argument);
    return argument;
  }
  for (Value operand : source->getOperands())
    take(operand);
  auto builder = OpBuilder::atBlockEnd(&weight.getBlock());
  builder.clone(*source, mapping);
  return mapping.lookup(value);
}

/// Fills the weight part, and takes its ops and results from the first one.
void BackwardSplitter::moveWeights() {
  Operation *results = fragment.getTerminator();
  for (Operation &op : fragment.getBlock().without_terminator())
    if (!awaited.contains(&op) && !op.use_empty())
      for (Value result : op.getResults())
        take(result);
  SmallVector<Value> sums, kept;
  for (unsigned index : later)
    sums.push_back(take(results->getOperand(index)));
  for (unsigned index : first)
    kept.push_back(results->getOperand(index));
  llvm::append_range(kept, residuals);
  auto builder = OpBuilder::atBlockEnd(&weight.getBlock());
  ReturnOp::create(builder, results->getLoc(), sums);
  weight.setFunctionType(builder.getFunctionType(weight.getBlock().getArgumentTypes(), ValueRange(sums).getTypes()));
  results->setOperands(kept);
  eraseDeadOps(fragment.getBlock());
}

void BackwardSplitter::rebuildRuns() {
  OpBuilder builder(run);
  SmallVector<Type> types, sums;
  for (unsigned index : first)
    types.push_back(run.getResult(index).getType());
  for (Value residual : residuals)
    types.push_back(distOfShards(cast<RankedTensorType>(residual.getType()), fragment.getStageAttr(),
                                 getMesh(run, fragment.getStageAttr())));
  for (unsigned index : later)
    sums.push_back(run.getResult(index).getType());
  llvm::BitVector unused(fragment.getNumArguments());
  SmallVector<Value> operands, all(run.getOperands());
  for (BlockArgument argument : fragment.getArguments())
    argument.use_empty() ? void(unused.set(argument.getArgNumber())) : operands.push_back(all[argument.getArgNumber()]);
  auto now = RunOp::create(builder, run.getLoc(), types, run.getFragment(), operands);
  SmallVector<Value> inputs;
  for (Value value : taken)
    if (auto argument = dyn_cast<BlockArgument>(value))
      inputs.push_back(all[argument.getArgNumber()]);
    else
      inputs.push_back(now.getResult(first.size() + (llvm::find(residuals, value) - residuals.begin())));
  fragment.getBlock().eraseArguments(unused);
  fragment.setFunctionType(
      builder.getFunctionType(fragment.getBlock().getArgumentTypes(), fragment.getTerminator()->getOperandTypes()));
  auto sum = RunOp::create(builder, run.getLoc(), sums, weight.getSymName(), inputs);
  for (auto [place, index] : llvm::enumerate(first))
    run.getResult(index).replaceAllUsesWith(now.getResult(place));
  for (auto [place, index] : llvm::enumerate(later))
    run.getResult(index).replaceAllUsesWith(sum.getResult(place));
  run.erase();
}

void BackwardSplitter::split() {
  findAwaited();
  auto [before, after] = fragment.getSymName().rsplit(".backward");
  std::string name = (before + ".weight" + after).str();
  OpBuilder builder(fragment);
  if (first.empty()) { // the first stage: no stage waits for its backward
    fragment.setKind(FragmentKind::weight);
    fragment.setSymName(name);
    run.setFragment(name);
  }
  if (first.empty() || later.empty())
    return;
  builder.setInsertionPointAfter(fragment);
  weight = FragmentOp::create(builder, fragment.getLoc(), name, builder.getFunctionType({}, {}), fragment.getStage(),
                              FragmentKind::weight);
  weight.setLocal(true);
  moveWeights();
  rebuildRuns();
}

namespace {
struct SplitBackwardPass : impl::SplitBackwardPassBase<SplitBackwardPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!runsWeightsApart(schedule))
      return;
    SmallVector<RunOp> backwards;
    getOperation().walk([&](RunOp run) {
      auto fragment = SymbolTable::lookupNearestSymbolFrom<FragmentOp>(run, run.getFragmentAttr());
      if (isa<LoopOp>(run->getParentOp()) && fragment && fragment.getKind() == FragmentKind::backward)
        backwards.push_back(run);
    });
    for (RunOp run : backwards)
      BackwardSplitter(run, SymbolTable::lookupNearestSymbolFrom<FragmentOp>(run, run.getFragmentAttr())).split();
  }
};
} // namespace

} // namespace par
