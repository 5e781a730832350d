// Gives every value one sharding: unites values that must have the same one into classes, seeds them from the plan, and
// spreads them by priority (Spread.cpp).
#include "Propagation.h"
#include "par/Phases/Propagate/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "par/Phases/Propagate/Passes.h.inc"

/// Constants and broadcast scalars can be built in any sharding: every use gets its own, so that users of equal ones
/// may differ.
static void splitUniform(FragmentOp fragment) {
  for (Operation &op : llvm::make_early_inc_range(fragment.getBlock().without_terminator())) {
    auto interface = dyn_cast<ShardingRuleOpInterface>(op);
    if (!interface || op.getNumResults() != 1 || op.use_empty() || op.getResult(0).hasOneUse() ||
        getTensorType(op.getResult(0).getType()).getRank() == 0)
      continue;
    ShardingRule rule = interface.getShardingRule();
    bool uniform = llvm::all_of(rule.operands, [](ArrayRef<DimFactors> dims) {
      return llvm::all_of(dims, [](const DimFactors &factors) { return factors.empty(); });
    });
    if (!uniform)
      continue;
    OpBuilder builder(&op);
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(op.getUses())))
      use.set(builder.clone(op)->getResult(0));
  }
}

void Propagation::joinRun(RunOp run) {
  auto fragment = symbols.lookup<FragmentOp>(run.getFragment());
  splitUniform(fragment);
  runs.push_back({run, fragment});
  for (auto [outer, inner] : llvm::zip(run.getOperands(), fragment.getArguments()))
    if (isa<DistType>(outer.getType()))
      layouts.join(outer, inner);
  for (auto [outer, inner] : llvm::zip(run.getResults(), fragment.getTerminator()->getOperands()))
    layouts.join(outer, inner);
  for (Operation &op : fragment.getBlock().without_terminator())
    if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
      rules[&op] = rule.getShardingRule();
}

/// Unites values that must have the same sharding: a run's values and its fragment's, both ends of a transfer, all
/// reads and writes of a variable (copies included), a loop's results and yielded values, slices of one value in
/// several loops.
void Propagation::join() {
  llvm::StringMap<Value> variables;
  DenseMap<Value, Value> parts; // of a value with a slice a microbatch
  auto joinVariable = [&](StringRef name, Value value) {
    auto variable = symbols.lookup<VariableOp>(name);
    StringRef owner = variable.getKind() == VariableKind::copy ? *variable.getOf() : name;
    Value &first = variables[owner];
    if (first)
      layouts.join(first, value);
    first = value;
  };
  auto joinPart = [&](Value whole, Value part) {
    auto [at, first] = parts.try_emplace(whole, part);
    if (!first)
      layouts.join(at->second, part);
  };
  step.walk([&](Operation *op) {
    if (auto run = dyn_cast<RunOp>(op)) {
      joinRun(run);
    } else if (auto transfer = dyn_cast<TransferOp>(op)) {
      layouts.join(transfer.getOperand(), transfer.getResult());
    } else if (auto read = dyn_cast<ReadOp>(op)) {
      joinVariable(read.getVariable(), read);
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      joinVariable(write.getVariable(), write.getOperand());
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      for (auto [operand, slice] : llvm::zip(loop.getSlices(), loop.getBody().getArguments().drop_front()))
        joinPart(operand, slice);
      auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
      for (auto [inner, outer, kind] :
           llvm::zip(yield.getOperands(), loop.getResults(), yield.getKinds().getAsRange<YieldKindAttr>()))
        if (kind.getValue() == YieldKind::sum)
          layouts.join(inner, outer);
        else
          joinPart(outer, inner);
    }
  });
}

void Propagation::run() {
  placeBorders();
  join();
  spreading.emplace(step, llvm::to_vector(llvm::make_second_range(runs)), rules, layouts);
  seedInputs();
  // The batch has priority 0, the plan's default is 1, further axes have 2; within one priority the batch goes first
  // and the plan next.
  SmallVector<int64_t> levels = planPriorities();
  auto seedUpTo = [&, next = levels.begin()](int64_t last) mutable {
    for (; next != levels.end() && *next <= last; ++next) {
      seedPlan(*next);
      spread();
    }
  };
  seedBatch();
  seedUpTo(0);
  spread();
  seedPlaces();
  seedUpTo(2);
  spreadParameters();
  keepUnchangedGathered();
  spread();
  seedUpTo(levels.back());
  placeGradients();
  spreading->settleLoops();
  finish();
  for (BlockArgument argument : step.getArguments())
    if (auto dist = dyn_cast<DistType>(argument.getType()); dist && step.getInputs())
      inputs.try_emplace(inputName(argument.getArgNumber()), dist.getSharding());
}

namespace {
struct PropagateShardingsPass : impl::PropagateShardingsPassBase<PropagateShardingsPass> {
  using PropagateShardingsPassBase::PropagateShardingsPassBase;

  LogicalResult verifyAxes() {
    auto known = [&](StringAttr axis) {
      return llvm::any_of(getOperation().getOps<StageOp>(),
                          [&](StageOp stage) { return stage.getMesh().getSize(axis) > 0; });
    };
    for (auto variable : getOperation().getOps<VariableOp>())
      if (variable.getSharding())
        for (DimShardingAttr dim : variable.getSharding()->getDims())
          for (StringAttr axis : dim.getAxes())
            if (!known(axis))
              return variable.emitError() << "is sharded over axis " << axis << ", which no stage's mesh has";
    auto verify = [&](ArrayRef<std::string> axes, StringRef what) -> LogicalResult {
      for (const std::string &axis : axes)
        if (!known(StringAttr::get(&getContext(), axis)))
          return getOperation().emitError() << what << " over axis \"" << axis << "\", which no stage's mesh has";
      return success();
    };
    return success(succeeded(verify(llvm::to_vector(batchAxes), "the batch is")) &&
                   succeeded(verify(llvm::to_vector(parameterAxes), "parameters are")) &&
                   succeeded(verify(llvm::to_vector(gradientAxes), "gradients are")) &&
                   succeeded(verify(llvm::to_vector(stateAxes), "states are")));
  }

  void runOnOperation() override {
    if (failed(verifyAxes()))
      return signalPassFailure();
    // Recomputes the places, since par-expand-composites runs this again.
    for (auto variable : getOperation().getOps<VariableOp>())
      variable.removeAtAttr();
    // Steps that write variables decide their places; the others take them from there.
    SmallVector<StepOp> steps(getOperation().getOps<StepOp>());
    llvm::stable_sort(steps, [](StepOp one, StepOp other) {
      auto writes = [](StepOp step) { return !step.getBlock().getOps<WriteOp>().empty(); };
      return writes(one) > writes(other);
    });
    llvm::StringMap<ShardingAttr> inputs; // by name, as the first step has them
    for (StepOp step : steps) {
      step.walk([](ReshardOp reshard) {
        reshard.replaceAllUsesWith(reshard.getOperand());
        reshard.erase();
      });
      PropagateOptions options{llvm::to_vector(batchAxes),
                               llvm::to_vector(parameterAxes),
                               llvm::to_vector(gradientAxes),
                               llvm::to_vector(stateAxes),
                               minSize,
                               gatherOnce,
                               masters,
                               llvm::to_vector(gradientRules),
                               llvm::to_vector(stateRules),
                               llvm::to_vector(priorities)};
      Propagation(step, options, inputs).run();
    }
  }
};
} // namespace

} // namespace par
