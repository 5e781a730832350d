#include "par/Propagate/FactorAxes.h"
#include "par/Propagate/Passes.h"

#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "par/Propagate/Passes.h.inc"

namespace {

/// What is known of the sharding of a class of values that must lie alike.
struct Layout {
  SmallVector<Axes> dims;
  SmallVector<bool> fixed; ///< the plan closed this dim
};

/// Propagation through one step and the fragments that it runs.
class Propagation {
public:
  Propagation(StepOp step, ArrayRef<std::string> batchAxes)
      : step(step), module(step->getParentOfType<ModuleOp>()) {
    for (const std::string &axis : batchAxes)
      batch.push_back(StringAttr::get(step.getContext(), axis));
  }

  void run();

private:
  void join();
  void joinRun(RunOp run);
  void seedBatch();
  void seed(Value value, ShardingAttr sharding);
  void seedPlaces();
  void seedPlan();
  void spread();
  bool spreadThrough(const ShardingRule &rule, ArrayRef<Value> operands, ArrayRef<Value> results,
                     MeshAttr mesh);
  bool spreadLoop(LoopOp loop);
  bool extend(Value value, int64_t dim, ArrayRef<StringAttr> axes);
  Layout &layoutOf(Value value);
  MeshAttr meshOf(Value value);
  void finish();
  void finishFragment(FragmentOp fragment);
  void setStepType(Value value, ArrayRef<StringAttr> unreduced);
  void reduceBehind(LoopOp loop);
  bool staysUnreduced(Value value);
  Axes sumAxes(Operation *op, Value result);

  StepOp step;
  ModuleOp module;
  Axes batch;
  llvm::EquivalenceClasses<void *> classes;
  DenseMap<void *, Layout> layouts;
  SmallVector<std::pair<RunOp, FragmentOp>> runs;
  DenseMap<Operation *, ShardingRule> rules; ///< of fragment ops, made once
  DenseMap<Value, Axes> unreduced;           ///< of fragment values that stay sums
};

} // namespace

Layout &Propagation::layoutOf(Value value) {
  void *leader = classes.getOrInsertLeaderValue(value.getAsOpaquePointer());
  Layout &layout = layouts[leader];
  if (layout.dims.empty()) {
    layout.dims.resize(getTensorType(value.getType()).getRank());
    layout.fixed.resize(layout.dims.size());
  }
  return layout;
}

/// The mesh of the stage where a step or fragment value lives.
MeshAttr Propagation::meshOf(Value value) {
  if (auto dist = dyn_cast<DistType>(value.getType()))
    return getMesh(module, dist.getStage());
  Operation *parent = value.getParentBlock()->getParentOp();
  return getMesh(module, cast<FragmentOp>(parent).getStageAttr());
}

void Propagation::joinRun(RunOp run) {
  auto fragment = module.lookupSymbol<FragmentOp>(run.getFragment());
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

/// What must lie alike: a run's values and its fragment's, both ends of a transfer, all reads and writes of a
/// variable (copies included), what a loop yields and gives.
void Propagation::join() {
  llvm::StringMap<Value> variables;
  auto join = [&](Value a, Value b) { classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer()); };
  auto joinVariable = [&](StringRef name, Value value) {
    auto variable = module.lookupSymbol<VariableOp>(name);
    StringRef owner = variable.getKind() == VariableKind::copy ? *variable.getOf() : name;
    Value &first = variables[owner];
    if (first)
      join(first, value);
    first = value;
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
      auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
      for (auto [inner, outer, kind] :
           llvm::zip(yield.getOperands(), loop.getResults(), yield.getKinds().getAsRange<YieldKindAttr>()))
        if (kind.getValue() == YieldKind::sum)
          join(inner, outer);
    }
  });
}

/// Appends axes to a dim where that is allowed; true if something changed.
bool Propagation::extend(Value value, int64_t dim, ArrayRef<StringAttr> axes) {
  Layout &layout = layoutOf(value);
  Axes &now = layout.dims[dim];
  if (layout.fixed[dim] || axes.size() <= now.size() || !startsWith(axes, now))
    return false;
  MeshAttr mesh = meshOf(value);
  bool changed = false;
  for (StringAttr axis : axes.drop_front(now.size())) {
    bool used = llvm::any_of(layout.dims, [&](const Axes &other) { return llvm::is_contained(other, axis); });
    int64_t shards = mesh.getSize(now) * mesh.getSize(axis);
    if (used || !mesh.getSize(axis) || getTensorType(value.getType()).getDimSize(dim) < shards)
      break;
    now.push_back(axis);
    changed = true;
  }
  return changed;
}

void Propagation::seedBatch() {
  for (BlockArgument argument : step.getArguments()) {
    MeshAttr mesh = meshOf(argument);
    Axes axes;
    for (StringAttr axis : batch)
      if (mesh.getSize(axis))
        axes.push_back(axis);
    // Inputs are (m, B/m, ...): dim 0 is time.
    if (getTensorType(argument.getType()).getRank() >= 2)
      extend(argument, 1, axes);
  }
}

void Propagation::seed(Value value, ShardingAttr sharding) {
  for (auto [dim, entry] : llvm::enumerate(sharding.getDims())) {
    extend(value, dim, entry.getAxes());
    if (!entry.getOpen())
      layoutOf(value).fixed[dim] = true;
  }
}

/// Where an earlier step has put variables, there they stay.
void Propagation::seedPlaces() {
  step.walk([&](ReadOp read) {
    auto variable = module.lookupSymbol<VariableOp>(read.getVariable());
    if (!variable.getAt() && variable.getKind() == VariableKind::copy)
      variable = module.lookupSymbol<VariableOp>(*variable.getOf());
    if (variable.getAt() && !variable.getAt()->empty())
      seed(read, cast<DistType>(cast<TypeAttr>((*variable.getAt())[0]).getValue()).getSharding());
  });
}

/// What the plan says of variables and values.
void Propagation::seedPlan() {
  step.walk([&](ReadOp read) {
    auto variable = module.lookupSymbol<VariableOp>(read.getVariable());
    if (variable.getSharding())
      seed(read, *variable.getSharding());
  });
  for (auto [run, fragment] : runs)
    fragment.walk([&](ConstrainOp constrain) { seed(constrain, constrain.getSharding()); });
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
  // One axis cuts one factor of an op; the first claim stands.
  llvm::SmallDenseMap<StringAttr, unsigned> owner;
  for (auto [index, axes] : llvm::enumerate(merged)) {
    if (conflict[index] || rule.factors[index].kind == FactorKind::Whole)
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

/// A slice lies as its operand without the first dim; a stacked result as what is yielded, behind one more
/// dim.
bool Propagation::spreadLoop(LoopOp loop) {
  bool changed = false;
  auto pair = [&](Value whole, Value part) {
    for (int64_t dim = 0, end = getTensorType(part.getType()).getRank(); dim < end; ++dim) {
      changed |= extend(part, dim, Axes(layoutOf(whole).dims[dim + 1]));
      changed |= extend(whole, dim + 1, Axes(layoutOf(part).dims[dim]));
    }
  };
  for (auto [operand, argument] : llvm::zip(loop.getSlices(), loop.getBody().getArguments().drop_front()))
    pair(operand, argument);
  auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
  for (auto [inner, outer, kind] :
       llvm::zip(yield.getOperands(), loop.getResults(), yield.getKinds().getAsRange<YieldKindAttr>()))
    if (kind.getValue() == YieldKind::stack)
      pair(outer, inner);
  return changed;
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
      changed |= spreadThrough(rules[op], SmallVector<Value>(op->getOperands()),
                               SmallVector<Value>(op->getResults()), meshOf(op->getResult(0)));
    };
    llvm::for_each(ops, visit);
    llvm::for_each(llvm::reverse(ops), visit);
  }
}

//===-- Outcome
//-------------------------------------------------------------------------------------------------===//

static ShardingAttr makeSharding(MLIRContext *context, ArrayRef<Axes> dims, ArrayRef<StringAttr> unreduced) {
  SmallVector<DimShardingAttr> entries;
  for (const Axes &axes : dims)
    entries.push_back(DimShardingAttr::get(context, axes, false));
  return ShardingAttr::get(context, entries, unreduced);
}

/// True if everything that uses a fragment value bears a sum of parts: the return to a loop's accumulator, or
/// an op that is linear in it and whose result stays a sum too.
bool Propagation::staysUnreduced(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<ReturnOp>(user)) {
      auto fragment = cast<FragmentOp>(user->getParentOp());
      for (auto [run, ran] : runs)
        if (ran == fragment)
          for (OpOperand &outer : run.getResult(use.getOperandNumber()).getUses()) {
            auto yield = dyn_cast<YieldOp>(outer.getOwner());
            if (!yield ||
                cast<YieldKindAttr>(yield.getKinds()[outer.getOperandNumber()]).getValue() != YieldKind::sum)
              return false;
          }
      continue;
    }
    auto rule = rules.find(user);
    if (rule == rules.end() || user->getNumResults() != 1)
      return false;
    // Ops of two sums are reduced first: their other operand need not be a sum over the same axes.
    bool alone = llvm::any_of(rule->second.linear, [&](ArrayRef<unsigned> set) {
      return set.size() == 1 && set.front() == use.getOperandNumber();
    });
    if (!alone || !staysUnreduced(user->getResult(0)))
      return false;
  }
  return !value.use_empty();
}

/// The axes over which an op's result is a sum of parts: those of its sum factors and of linear operands.
Axes Propagation::sumAxes(Operation *op, Value result) {
  Axes axes;
  const ShardingRule &rule = rules[op];
  MeshAttr mesh = meshOf(result);
  Layout &layout = layoutOf(result);
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands)) {
    SmallVector<Axes> mine(rule.factors.size());
    projectToFactors(rule, dims, layoutOf(operand).dims, mesh, mine);
    for (auto [index, factorAxes] : llvm::enumerate(mine)) {
      bool inResult = llvm::any_of(rule.results[0],
                                   [&](const DimFactors &dim) { return llvm::is_contained(dim, index); });
      FactorKind kind = rule.factors[index].kind;
      if (kind == FactorKind::Sum || (kind == FactorKind::Indexed && !inResult))
        llvm::append_range(axes, factorAxes);
    }
    llvm::append_range(axes, unreduced.lookup(operand));
  }
  Axes unique;
  for (StringAttr axis : axes)
    if (!llvm::is_contained(unique, axis) &&
        llvm::none_of(layout.dims, [&](const Axes &dim) { return llvm::is_contained(dim, axis); }))
      unique.push_back(axis);
  return unique;
}

void Propagation::finishFragment(FragmentOp fragment) {
  MLIRContext *context = step.getContext();
  SmallVector<Attribute> arguments;
  for (BlockArgument argument : fragment.getArguments())
    arguments.push_back(makeSharding(context, layoutOf(argument).dims, {}));
  fragment.setShardingsAttr(ArrayAttr::get(context, arguments));
  for (Operation &op : fragment.getBlock().without_terminator())
    for (Value result : op.getResults()) {
      Axes sums;
      if (op.getNumResults() == 1 && rules.count(&op) && staysUnreduced(result))
        sums = sumAxes(&op, result);
      unreduced[result] = sums;
      setSharding(result, makeSharding(context, layoutOf(result).dims, sums));
    }
  SmallVector<Attribute> results;
  for (Value result : fragment.getTerminator()->getOperands())
    results.push_back(makeSharding(context, layoutOf(result).dims, unreduced.lookup(result)));
  fragment.setResultShardingsAttr(ArrayAttr::get(context, results));
}

void Propagation::setStepType(Value value, ArrayRef<StringAttr> sums) {
  if (auto dist = dyn_cast<DistType>(value.getType()))
    value.setType(dist.withSharding(makeSharding(step.getContext(), layoutOf(value).dims, sums)));
}

/// Unreduced accumulators are reduced once, behind the loop.
void Propagation::reduceBehind(LoopOp loop) {
  OpBuilder builder(loop->getContext());
  builder.setInsertionPointAfter(loop);
  for (Value result : loop.getResults()) {
    auto dist = cast<DistType>(result.getType());
    if (dist.getSharding().getUnreduced().empty())
      continue;
    auto reduced = ReshardOp::create(builder, result.getLoc(),
                                     dist.withSharding(dist.getSharding().withUnreduced({})), result);
    result.replaceAllUsesExcept(reduced, reduced);
  }
}

void Propagation::finish() {
  for (auto [run, fragment] : runs)
    finishFragment(fragment);
  for (BlockArgument argument : step.getArguments())
    setStepType(argument, {});
  step.walk([&](Operation *op) {
    auto run = dyn_cast<RunOp>(op);
    auto fragment = run ? module.lookupSymbol<FragmentOp>(run.getFragment()) : FragmentOp();
    for (OpResult result : op->getResults()) {
      Axes sums;
      if (run)
        sums = unreduced.lookup(fragment.getTerminator()->getOperand(result.getResultNumber()));
      setStepType(result, sums);
    }
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        setStepType(argument, {});
  });
  SmallVector<LoopOp> loops;
  step.walk([&](LoopOp loop) { loops.push_back(loop); });
  for (LoopOp loop : loops) {
    auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
    for (auto [inner, outer] : llvm::zip(yield.getOperands(), loop.getResults()))
      setStepType(outer, cast<DistType>(inner.getType()).getSharding().getUnreduced());
    reduceBehind(loop);
  }
  step.setFunctionType(FunctionType::get(step.getContext(), step.getBlock().getArgumentTypes(),
                                         step.getTerminator()->getOperandTypes()));
  // Where each variable lies, the owner's stage first.
  llvm::MapVector<StringAttr, SmallVector<Attribute>> places;
  step.walk([&](ReadOp read) {
    places[read.getVariableAttr().getAttr()].push_back(TypeAttr::get(read.getType()));
  });
  step.walk([&](WriteOp write) {
    auto &list = places[write.getVariableAttr().getAttr()];
    if (auto type = TypeAttr::get(write.getOperand().getType()); !llvm::is_contained(list, type))
      list.push_back(type);
  });
  for (auto &[name, list] : places) {
    auto variable = module.lookupSymbol<VariableOp>(name);
    if (variable.getAt())
      for (Attribute type : variable.getAtAttr())
        if (!llvm::is_contained(list, type))
          list.push_back(type);
    variable.setAtAttr(ArrayAttr::get(step.getContext(), list));
  }
}

void Propagation::run() {
  join();
  seedPlaces();
  seedBatch();
  spread();
  seedPlan();
  spread();
  finish();
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
    for (const std::string &axis : batchAxes)
      if (!known(StringAttr::get(&getContext(), axis)))
        return getOperation().emitError()
               << "the batch is over axis \"" << axis << "\", which no stage's mesh has";
    return success();
  }

  void runOnOperation() override {
    if (failed(verifyAxes()))
      return signalPassFailure();
    // Places are found anew: after par-expand-composites this runs again.
    for (auto variable : getOperation().getOps<VariableOp>())
      variable.removeAtAttr();
    // Steps that write variables say where they lie; the others take them from there.
    SmallVector<StepOp> steps(getOperation().getOps<StepOp>());
    llvm::stable_sort(steps, [](StepOp one, StepOp other) {
      auto writes = [](StepOp step) { return !step.getBlock().getOps<WriteOp>().empty(); };
      return writes(one) > writes(other);
    });
    for (StepOp step : steps) {
      step.walk([](ReshardOp reshard) {
        reshard.replaceAllUsesWith(reshard.getOperand());
        reshard.erase();
      });
      Propagation(step, llvm::to_vector(batchAxes)).run();
    }
  }
};
} // namespace

} // namespace par
