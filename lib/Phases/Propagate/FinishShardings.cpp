// The last part of propagation: which results stay unreduced sums, and over which axes. A sum is reduced once, after
// the loop that accumulates it, unless a constraint or a non-linear use needs it earlier.
#include "Propagation.h"

using namespace mlir;

namespace par {

ShardingAttr makeSharding(MLIRContext *context, ArrayRef<Axes> dims, ArrayRef<StringAttr> unreduced) {
  SmallVector<DimShardingAttr> entries;
  for (const Axes &axes : dims)
    entries.push_back(DimShardingAttr::get(context, axes, false));
  return ShardingAttr::get(context, entries, unreduced);
}

/// True if an op is linear in the operand of this use and other such operands (the factors of a multiplication) are no
/// partial sums. `joint`: linear together with others, as an addition.
bool Propagation::isLinearIn(OpOperand &use, bool &joint) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  auto rule = rules.find(op);
  if (rule == rules.end() || op->getNumResults() != 1)
    return false;
  bool linear = false;
  for (auto &set : rule->second.linear)
    if (llvm::is_contained(set, number)) {
      linear = true;
      joint = set.size() > 1;
    } else if (llvm::any_of(set, [&](unsigned other) {
                 return op->getOperand(other) == use.get() || !unreduced.lookup(op->getOperand(other)).empty();
               })) {
      return false;
    }
  return linear;
}

/// A constraint whose value may stay a partial sum over some axes; each use reduces it. A fragment's result is no
/// partial sum, unless a loop accumulates it.
static bool mayStaySum(Operation *op) {
  auto constrain = dyn_cast<ConstrainOp>(op);
  return constrain && !constrain.getSharding().getUnreduced().empty() &&
         llvm::none_of(op->getUsers(), [](Operation *user) { return isa<ReturnOp>(user); });
}

/// Leaves of the axes over which a value is a sum those that the constraints that it reaches as one let it be.
void Propagation::keepPartial(Value value, Axes &sums) {
  for (Operation *user : value.getUsers()) {
    if (mayStaySum(user))
      llvm::erase_if(sums, [&](StringAttr axis) {
        return !llvm::is_contained(cast<ConstrainOp>(user).getSharding().getUnreduced(), axis);
      });
    else if (!isa<ReturnOp>(user))
      keepPartial(user->getResult(0), sums);
  }
}

/// True if all users of a fragment's value accept a partial sum: the return to a loop's accumulator, or an op that is
/// linear in it and whose result stays a partial sum too. A total of partial and other sums (`alone`) needs a single
/// use: one rank of the axis counts the others, which would become partial sums in all uses.
bool Propagation::staysUnreduced(Value value, bool alone) {
  if (value.use_empty() || (alone && !value.hasOneUse()))
    return false;
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<ReturnOp>(user))
      return isAccumulated(cast<FragmentOp>(user->getParentOp()), use.getOperandNumber());
    if (mayStaySum(user))
      return true;
    bool joint = false;
    return isLinearIn(use, joint) && (!joint || value.hasOneUse()) &&
           staysUnreduced(user->getResult(0), alone || joint);
  });
}

/// True if all that uses a fragment's result is the accumulator of a loop.
bool Propagation::isAccumulated(FragmentOp fragment, unsigned result) {
  for (auto [run, ran] : runs)
    if (ran == fragment)
      for (OpOperand &outer : run.getResult(result).getUses()) {
        auto yield = dyn_cast<YieldOp>(outer.getOwner());
        if (!yield || cast<YieldKindAttr>(yield.getKinds()[outer.getOperandNumber()]).getValue() != YieldKind::sum)
          return false;
      }
  return true;
}

/// The sharding of a fragment's value, as far as it is final.
ArrayRef<Axes> Propagation::dimsOf(Value value) {
  auto found = bare.find(value);
  return found == bare.end() ? ArrayRef<Axes>(layouts.of(value).dims) : ArrayRef<Axes>(found->second);
}

/// Axes over which an op's result is a partial sum and that do not shard it. `summand`: also those that do, but not
/// by an operand; never those, other than the batch's, over which its rows are sent to where it lies.
Axes Propagation::sumAxes(Operation *op, Value result, bool summand) {
  Axes axes, cut;
  const ShardingRule &rule = rules[op];
  MeshAttr mesh = layouts.meshOf(result);
  for (auto [number, operand, dims] : llvm::enumerate(op->getOperands(), rule.operands)) {
    SmallVector<Axes> mine(rule.factors.size());
    projectToFactors(rule, dims, dimsOf(operand), mesh, mine);
    for (auto [index, factorAxes] : llvm::enumerate(mine)) {
      bool inResult =
          llvm::any_of(rule.results[0], [&](const DimFactors &dim) { return llvm::is_contained(dim, index); });
      if (rule.factors[index].kind == FactorKind::Sum || (rule.factors[index].kind == FactorKind::Indexed && !inResult))
        llvm::append_range(axes, factorAxes);
      if (inResult)
        llvm::append_range(cut, factorAxes);
    }
    // Other uses reduce it first: a constraint lets a value be a partial sum in any use.
    if (llvm::any_of(rule.linear, [&](auto &set) { return llvm::is_contained(set, number); }))
      llvm::append_range(axes, unreduced.lookup(operand));
  }
  if (!summand)
    for (const Axes &dim : dimsOf(result))
      llvm::append_range(cut, dim);
  Axes unique;
  for (StringAttr axis : axes)
    if (!llvm::is_contained(unique, axis) && !llvm::is_contained(cut, axis) &&
        !(summand && !llvm::is_contained(batch, axis) &&
          canPlaceRows(op, rule, dimsOf(op->getOperand(0)), dimsOf(result), axis, mesh)))
      unique.push_back(axis);
  return unique;
}

/// Whether a value is a partial sum over the axis: by its own op, or because all its summands are.
bool Propagation::isSumOver(Value value, StringAttr axis) {
  Operation *op = value.getDefiningOp();
  auto rule = op ? rules.find(op) : rules.end();
  if (rule == rules.end() || op->getNumResults() != 1)
    return false;
  return llvm::is_contained(sumAxes(op, value, /*summand=*/true), axis) ||
         llvm::any_of(rule->second.linear, [&](auto &set) {
           return set.size() == op->getNumOperands() && llvm::all_of(set, [&](unsigned operand) {
                    return op->getOperand(operand).hasOneUse() && isSumOver(op->getOperand(operand), axis);
                  });
         });
}

/// Whether all that is added to a value on its way to an accumulator is a sum over the axis too.
bool Propagation::meetsSums(Value value, StringAttr axis) {
  while (value.hasOneUse() && !isa<ReturnOp>(*value.getUsers().begin())) {
    OpOperand &use = *value.getUses().begin();
    Operation *user = use.getOwner();
    for (auto &set : rules[user].linear)
      for (unsigned other : set)
        if (llvm::is_contained(set, use.getOperandNumber()) && other != use.getOperandNumber() &&
            !isSumOver(user->getOperand(other), axis))
          return false;
    value = user->getResult(0);
  }
  return true;
}

/// The layout of a summand of an accumulator that is sharded over axes over which the summand is a partial sum: only
/// the total is sharded, for one reduction. That gains nothing if another summand is no partial sum (a tied table's,
/// whose head is split by the axis): then it has the accumulator's layout. Returns the axes over which it stays a
/// partial sum.
Axes Propagation::bareSummand(Operation *op, Value result) {
  Axes sums = sumAxes(op, result, /*summand=*/true);
  SmallVector<Axes> dims(dimsOf(result));
  llvm::erase_if(sums, [&](StringAttr axis) {
    bool spread = llvm::any_of(dims, [&](const Axes &dim) { return llvm::is_contained(dim, axis); });
    return spread && !meetsSums(result, axis);
  });
  for (Axes &dim : dims)
    while (!dim.empty() && llvm::is_contained(sums, dim.back()))
      dim.pop_back();
  llvm::erase_if(sums, [&](StringAttr axis) {
    return llvm::any_of(dims, [&](const Axes &dim) { return llvm::is_contained(dim, axis); });
  });
  bare[result] = dims;
  return sums;
}

void Propagation::finishFragment(FragmentOp fragment) {
  MLIRContext *context = step.getContext();
  SmallVector<Attribute> arguments;
  for (BlockArgument argument : fragment.getArguments())
    arguments.push_back(makeSharding(context, layouts.of(argument).dims, {}));
  fragment.setShardingsAttr(ArrayAttr::get(context, arguments));
  for (Operation &op : fragment.getBlock().without_terminator())
    for (Value result : op.getResults()) {
      Axes sums;
      auto returned = [](Operation *user) { return isa<ReturnOp>(user); };
      if (mayStaySum(&op)) {
        sums = sumAxes(&op, result);
      } else if (op.getNumResults() == 1 && rules.count(&op) && staysUnreduced(result)) {
        sums = llvm::any_of(result.getUsers(), returned) ? sumAxes(&op, result) : bareSummand(&op, result);
        keepPartial(result, sums);
      }
      unreduced[result] = sums;
      setSharding(result, makeSharding(context, dimsOf(result), sums));
    }
  for (Operation &op : fragment.getBlock().without_terminator()) {
    meetSums(op);
    deferReductions(op);
  }
}

void Propagation::finishResults(FragmentOp fragment) {
  SmallVector<Attribute> results;
  for (Value result : fragment.getTerminator()->getOperands())
    results.push_back(makeSharding(step.getContext(), layouts.of(result).dims, unreduced.lookup(result)));
  fragment.setResultShardingsAttr(ArrayAttr::get(step.getContext(), results));
}

void Propagation::setStepType(Value value, ArrayRef<StringAttr> sums) {
  if (auto dist = dyn_cast<DistType>(value.getType()))
    value.setType(dist.withSharding(makeSharding(step.getContext(), layouts.of(value).dims, sums)));
}

/// Unreduced accumulators are reduced once, after the loop: by their border, else by a reshard.
void Propagation::reduceBehind(LoopOp loop) {
  OpBuilder builder(loop->getContext());
  builder.setInsertionPointAfter(loop);
  for (Value result : loop.getResults()) {
    auto dist = cast<DistType>(result.getType());
    auto isReduced = [](OpOperand &use) { return isa<ReshardOp>(use.getOwner()); };
    if (dist.getSharding().getUnreduced().empty() || (!result.use_empty() && llvm::all_of(result.getUses(), isReduced)))
      continue;
    auto reduced =
        ReshardOp::create(builder, result.getLoc(), dist.withSharding(dist.getSharding().withUnreduced({})), result);
    result.replaceUsesWithIf(reduced, [&](OpOperand &use) { return !isReduced(use); });
  }
}

/// Sets the types of the step's values from their classes; loops' sums are reduced after them.
void Propagation::finishStep() {
  for (BlockArgument argument : step.getArguments())
    setStepType(argument, {});
  step.walk([&](Operation *op) {
    auto run = dyn_cast<RunOp>(op);
    auto fragment = run ? symbols.lookup<FragmentOp>(run.getFragment()) : FragmentOp();
    for (OpResult result : op->getResults()) {
      setStepType(result,
                  run ? unreduced.lookup(fragment.getTerminator()->getOperand(result.getResultNumber())) : Axes());
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
  step.walk([](ReshardOp reshard) {
    if (reshard.getOperand().getType() != reshard.getType())
      return;
    reshard.replaceAllUsesWith(reshard.getOperand());
    reshard.erase();
  });
  step.setFunctionType(FunctionType::get(step.getContext(), step.getBlock().getArgumentTypes(),
                                         step.getTerminator()->getOperandTypes()));
}

/// Sets the places of each variable, the owner's stage first.
void Propagation::placeVariables() {
  llvm::MapVector<StringAttr, SmallVector<Attribute>> places;
  step.walk([&](ReadOp read) { places[read.getVariableAttr().getAttr()].push_back(TypeAttr::get(read.getType())); });
  step.walk([&](WriteOp write) {
    auto &list = places[write.getVariableAttr().getAttr()];
    if (auto type = TypeAttr::get(write.getOperand().getType()); !llvm::is_contained(list, type))
      list.push_back(type);
  });
  for (auto &[name, list] : places) {
    auto variable = symbols.lookup<VariableOp>(name);
    if (variable.getAt())
      for (Attribute type : variable.getAtAttr())
        if (!llvm::is_contained(list, type))
          list.push_back(type);
    variable.setAtAttr(ArrayAttr::get(step.getContext(), list));
  }
}

void Propagation::finish() {
  for (auto [run, fragment] : runs)
    finishFragment(fragment);
  carrySums();
  for (auto [run, fragment] : runs)
    finishResults(fragment);
  finishStep();
  placeVariables();
}

} // namespace par
