// Gives every value one sharding: unites values that must have the same one into classes, seeds them from the plan, and
// spreads axes along the ops' sharding rules in both directions, by priority, until nothing changes.
#include "Propagation.h"
#include "par/Phases/Propagate/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "par/Phases/Propagate/Passes.h.inc"

Layout &Propagation::layoutOf(Value value) {
  void *leader = classes.getOrInsertLeaderValue(value.getAsOpaquePointer());
  Layout &layout = layouts[leader];
  if (layout.dims.empty()) {
    layout.dims.resize(getTensorType(value.getType()).getRank());
    layout.fixed.resize(layout.dims.size());
  }
  return layout;
}

MeshAttr Propagation::meshOf(Value value) {
  if (auto dist = dyn_cast<DistType>(value.getType()))
    return getMesh(module, dist.getStage());
  Operation *parent = value.getParentBlock()->getParentOp();
  return getMesh(module, cast<FragmentOp>(parent).getStageAttr());
}

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
  auto join = [&](Value a, Value b) { classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer()); };
  for (auto [outer, inner] : llvm::zip(run.getOperands(), fragment.getArguments()))
    if (isa<DistType>(outer.getType()))
      join(outer, inner);
  for (auto [outer, inner] : llvm::zip(run.getResults(), fragment.getTerminator()->getOperands()))
    join(outer, inner);
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
  auto join = [&](Value a, Value b) { classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer()); };
  auto joinVariable = [&](StringRef name, Value value) {
    auto variable = symbols.lookup<VariableOp>(name);
    StringRef owner = variable.getKind() == VariableKind::copy ? *variable.getOf() : name;
    Value &first = variables[owner];
    if (first)
      join(first, value);
    first = value;
  };
  auto joinPart = [&](Value whole, Value part) {
    auto [at, first] = parts.try_emplace(whole, part);
    if (!first)
      join(at->second, part);
  };
  step.walk([&](Operation *op) {
    if (auto run = dyn_cast<RunOp>(op)) {
      joinRun(run);
    } else if (auto transfer = dyn_cast<TransferOp>(op)) {
      join(transfer.getOperand(), transfer.getResult());
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
          join(inner, outer);
        else
          joinPart(outer, inner);
    }
  });
}

/// Maximum number of shards that the axes give on any stage: values in a class have one sharding on several stages.
int64_t Propagation::maxShards(ArrayRef<StringAttr> axes) {
  int64_t most = 1;
  for (StageOp stage : stages)
    most = std::max(most, stage.getMesh().getSize(axes));
  return most;
}

/// Appends axes to a dim if that is allowed; true if something changed.
bool Propagation::extend(Value value, int64_t dim, ArrayRef<StringAttr> axes) {
  Layout &layout = layoutOf(value);
  Axes &now = layout.dims[dim];
  if (layout.fixed[dim] || axes.size() <= now.size() || !startsWith(axes, now))
    return false;
  MeshAttr mesh = meshOf(value);
  bool changed = false;
  for (StringAttr axis : axes.drop_front(now.size())) {
    bool used = llvm::any_of(layout.dims, [&](const Axes &other) { return llvm::is_contained(other, axis); });
    int64_t shards = maxShards(now) * maxShards(axis);
    bool barred = layout.gathered && llvm::is_contained(parameterAxes, axis);
    if (used || barred || !mesh.getSize(axis) || getTensorType(value.getType()).getDimSize(dim) < shards)
      break;
    now.push_back(axis);
    changed = true;
  }
  return changed;
}

/// Carries axes along one rule, both ways; true if something changed.
bool Propagation::spreadThrough(const ShardingRule &rule, ArrayRef<Value> operands, ArrayRef<Value> results,
                                MeshAttr mesh) {
  SmallVector<Axes> merged(rule.factors.size());
  SmallVector<bool> conflict(rule.factors.size());
  auto gather = [&](Value value, ArrayRef<DimFactors> dims) {
    SmallVector<Axes> mine(rule.factors.size());
    projectToFactors(rule, dims, layoutOf(value).dims, mesh, mine);
    for (auto [all, one, clash] : llvm::zip(merged, mine, conflict)) {
      if (startsWith(one, all))
        all = one;
      else if (!startsWith(all, one))
        clash = true;
    }
  };
  for (auto [operand, dims] : llvm::zip(operands, rule.operands))
    gather(operand, dims);
  for (auto [result, dims] : llvm::zip(results, rule.results))
    gather(result, dims);
  // One axis shards one factor of an op; the first claim stays.
  llvm::SmallDenseMap<StringAttr, unsigned> owner;
  for (auto [index, axes] : llvm::enumerate(merged)) {
    if (conflict[index] || rule.factors[index].kind == FactorKind::NeedReplication)
      axes.clear();
    for (size_t i = 0; i < axes.size(); ++i)
      if (!owner.try_emplace(axes[i], index).second) {
        axes.truncate(i);
        break;
      }
  }
  bool changed = false;
  auto scatter = [&](Value value, ArrayRef<DimFactors> dims) {
    for (auto [dim, factors] : llvm::enumerate(dims))
      changed |= extend(value, dim, axesOfDim(rule, factors, merged, mesh));
  };
  for (auto [operand, dims] : llvm::zip(operands, rule.operands))
    scatter(operand, dims);
  for (auto [result, dims] : llvm::zip(results, rule.results))
    scatter(result, dims);
  return changed;
}

/// Pairs of a value that a loop slices or stacks and its part of one microbatch.
static SmallVector<std::pair<Value, Value>> partsOf(LoopOp loop) {
  SmallVector<std::pair<Value, Value>> parts;
  for (auto [operand, argument] : llvm::zip(loop.getSlices(), loop.getBody().getArguments().drop_front()))
    parts.push_back({operand, argument});
  auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
  for (auto [inner, outer, kind] :
       llvm::zip(yield.getOperands(), loop.getResults(), yield.getKinds().getAsRange<YieldKindAttr>()))
    if (kind.getValue() == YieldKind::stack)
      parts.push_back({outer, inner});
  return parts;
}

/// A slice has the sharding of its operand without the first dim; a stacked result has the yielded value's after one
/// more dim.
bool Propagation::spreadLoop(LoopOp loop) {
  bool changed = false;
  for (auto [whole, part] : partsOf(loop))
    for (int64_t dim = 0, end = getTensorType(part.getType()).getRank(); dim < end; ++dim) {
      changed |= extend(part, dim, Axes(layoutOf(whole).dims[dim + 1]));
      changed |= extend(whole, dim + 1, Axes(layoutOf(part).dims[dim]));
      // A dim that is fixed in one is fixed in the other, since both must stay equal.
      bool fixed = layoutOf(whole).fixed[dim + 1] || layoutOf(part).fixed[dim];
      layoutOf(whole).fixed[dim + 1] = fixed;
      layoutOf(part).fixed[dim] = fixed;
    }
  return changed;
}

/// If one axis shards different dims of a whole and of its part (a carried value is read sharded by rows and computed
/// sharded by columns), neither can follow the other: both keep only their common axes.
void Propagation::settleLoops() {
  auto settle = [&](Axes &one, Axes &other) {
    auto [mine, theirs] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
    bool parted = mine != one.end() || theirs != other.end();
    one.erase(mine, one.end());
    other.erase(theirs, other.end());
    return parted;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    step.walk([&](LoopOp loop) {
      for (auto [whole, part] : partsOf(loop))
        for (int64_t dim = 0, end = getTensorType(part.getType()).getRank(); dim < end; ++dim)
          changed |= settle(layoutOf(whole).dims[dim + 1], layoutOf(part).dims[dim]);
    });
  }
}

/// To the fixpoint: every round looks at every op forwards, then backwards.
void Propagation::spread() {
  SmallVector<Operation *> ops;
  for (auto [run, fragment] : runs)
    for (Operation &op : fragment.getBlock().without_terminator())
      if (rules.count(&op))
        ops.push_back(&op);
  bool changed = true;
  while (changed) {
    changed = false;
    step.walk([&](LoopOp loop) { changed |= spreadLoop(loop); });
    auto visit = [&](Operation *op) {
      changed |= spreadThrough(rules[op], SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults()),
                               meshOf(op->getResult(0)));
    };
    llvm::for_each(ops, visit);
    llvm::for_each(llvm::reverse(ops), visit);
  }
}

void Propagation::run() {
  placeBorders();
  join();
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
  settleLoops();
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
