// Separates state that a forward needs from the update of the batch before it: a counter is advanced at a batch's
// begin, and moving statistics are updated in a run of their own.
#include "BatchState.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace par {

static FragmentOp fragmentOf(RunOp run) {
  return SymbolTable::lookupNearestSymbolFrom<FragmentOp>(run, run.getFragmentAttr());
}

static bool isBehindLoops(RunOp run) { return run && isa<StepOp>(run->getParentOp()); }

/// The ops of a fragment from which one of its results is computed; nothing if they use an operand of the run that is
/// not `allowed`.
static std::optional<llvm::DenseSet<Operation *>> findMakers(RunOp run, unsigned result,
                                                             llvm::function_ref<bool(Value)> allowed) {
  llvm::DenseSet<Operation *> makers;
  SmallVector<Value> open{fragmentOf(run).getTerminator()->getOperand(result)};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (!allowed(run.getOperands()[argument.getArgNumber()]))
        return std::nullopt;
    } else if (makers.insert(value.getDefiningOp()).second) {
      llvm::append_range(open, value.getDefiningOp()->getOperands());
    }
  }
  return makers;
}

/// Another fragment of the same step and stage.
static FragmentOp createBeside(FragmentOp other, StepOp step, StringRef name, TypeRange arguments, TypeRange results,
                               FragmentKind kind) {
  OpBuilder builder(other);
  std::string symbol = (step.getSymName() + "." + other.getStage() + "." + name).str();
  for (unsigned again = 1; SymbolTable::lookupNearestSymbolFrom(step, builder.getStringAttr(symbol)); ++again)
    symbol = (step.getSymName() + "." + other.getStage() + "." + name + Twine(again)).str();
  return FragmentOp::create(builder, other.getLoc(), symbol, builder.getFunctionType(arguments, results),
                            other.getStage(), kind);
}

/// A run before `run` that computes some of its results. With `givesOperands` it returns its operands, too, before
/// them.
static RunOp runApart(RunOp run, ArrayRef<unsigned> results, const llvm::DenseSet<Operation *> &makers, StringRef name,
                      FragmentKind kind, bool givesOperands) {
  FragmentOp source = fragmentOf(run);
  SmallVector<unsigned> taken;
  for (BlockArgument argument : source.getArguments())
    if (llvm::any_of(argument.getUsers(), [&](Operation *user) { return makers.contains(user); }))
      taken.push_back(argument.getArgNumber());
  SmallVector<Value> operands, given, made;
  SmallVector<Type> types, inner;
  for (unsigned number : taken)
    operands.push_back(run.getOperands()[number]), inner.push_back(source.getArgument(number).getType());
  FragmentOp apart = createBeside(source, run->getParentOfType<StepOp>(), name, inner, {}, kind);
  IRMapping mapping;
  for (auto [number, argument] : llvm::zip(taken, apart.getArguments()))
    mapping.map(source.getArgument(number), argument);
  auto body = OpBuilder::atBlockEnd(&apart.getBlock());
  for (Operation &op : source.getBlock())
    if (makers.contains(&op))
      body.clone(op, mapping);
  if (givesOperands) {
    llvm::append_range(given, apart.getArguments());
    llvm::append_range(types, ValueRange(operands).getTypes());
  }
  for (unsigned result : results) {
    given.push_back(mapping.lookup(source.getTerminator()->getOperand(result)));
    types.push_back(run.getResult(result).getType());
  }
  ReturnOp::create(body, source.getLoc(), given);
  OpBuilder builder(run);
  apart.setFunctionType(builder.getFunctionType(inner, ValueRange(given).getTypes()));
  return RunOp::create(builder, run.getLoc(), types, apart.getSymName(), operands);
}

/// Removes results of a run's fragment, and the ops that only they needed.
static void dropResults(RunOp run, ArrayRef<unsigned> dropped) {
  FragmentOp fragment = fragmentOf(run);
  Operation *results = fragment.getTerminator();
  SmallVector<Value> kept, given, operands;
  for (OpResult result : run.getResults())
    if (!llvm::is_contained(dropped, result.getResultNumber())) {
      kept.push_back(result);
      given.push_back(results->getOperand(result.getResultNumber()));
    }
  results->setOperands(given);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(fragment.getBlock())))
    if (&op != results && op.use_empty())
      op.erase();
  llvm::BitVector unused(fragment.getNumArguments());
  for (auto [argument, operand] : llvm::zip(fragment.getArguments(), run.getOperands()))
    argument.use_empty() ? void(unused.set(argument.getArgNumber())) : operands.push_back(operand);
  fragment.getBlock().eraseArguments(unused);
  OpBuilder builder(run);
  fragment.setFunctionType(builder.getFunctionType(fragment.getBlock().getArgumentTypes(), results->getOperandTypes()));
  if (kept.empty()) {
    run.erase();
    fragment.erase();
    return;
  }
  auto fresh = RunOp::create(builder, run.getLoc(), ValueRange(kept).getTypes(), run.getFragment(), operands);
  for (auto [old, now] : llvm::zip(kept, fresh.getResults()))
    old.replaceAllUsesWith(now);
  run.erase();
}

/// Each loop that reads the counter takes the number along, microbatch by microbatch.
static void takeAlong(ReadOp read, RunOp count) {
  llvm::MapVector<LoopOp, SmallVector<OpOperand *>> uses;
  for (OpOperand &use : read->getUses())
    if (auto loop = dyn_cast<LoopOp>(use.getOwner()->getParentOp()))
      uses[loop].push_back(&use);
  Type type = cast<DistType>(read.getType()).getTensor();
  FragmentOp counted =
      createBeside(fragmentOf(count), read->getParentOfType<StepOp>(), "counted", type, type, FragmentKind::before);
  auto body = OpBuilder::atBlockEnd(&counted.getBlock());
  ReturnOp::create(body, read.getLoc(), counted.getArguments());
  for (auto &[loop, operands] : uses) {
    auto inner = OpBuilder::atBlockBegin(&LoopOp(loop).getBody().front());
    auto number = RunOp::create(inner, read.getLoc(), read.getType(), counted.getSymName(), count.getResult(0));
    for (OpOperand *use : operands)
      use->set(number.getResult(0));
  }
}

bool countAtBegin(ReadOp read, WriteOp write) {
  auto update = write.getOperand().getDefiningOp<RunOp>();
  if (!isBehindLoops(update) || !write.getOperand().hasOneUse())
    return false;
  unsigned result = cast<OpResult>(write.getOperand()).getResultNumber();
  auto makers = findMakers(update, result, [&](Value operand) { return operand == read.getResult(); });
  if (!makers)
    return false;
  RunOp count = runApart(update, result, *makers, "count", FragmentKind::before, /*givesOperands=*/true);
  for (Operation &op : llvm::reverse(read->getParentOfType<StepOp>().getBlock()))
    if (isa<ReadOp>(op)) { // before all loops
      count->moveAfter(&op);
      break;
    }
  takeAlong(read, count);
  write.getOperandMutable().assign(count.getResult(1));
  dropResults(update, result);
  return true;
}

bool movesInForward(ReadOp read, WriteOp write) {
  auto loop = write.getOperand().getDefiningOp<LoopOp>();
  return loop && llvm::all_of(read->getUsers(), [&](Operation *user) {
           auto run = dyn_cast<RunOp>(user);
           return run && run->getParentOp() == loop && fragmentOf(run).getKind() == FragmentKind::forward;
         });
}

/// A variable, or a loop's sum from forward.
static bool isOfForward(Value value) {
  auto loop = value.getDefiningOp<LoopOp>();
  if (!loop)
    return value.getDefiningOp<ReadOp>() != nullptr;
  Value summand = loop.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
  auto run = summand.getDefiningOp<RunOp>();
  return run && fragmentOf(run).getKind() == FragmentKind::forward;
}

void moveStatistics(StepOp step) {
  auto module = step->getParentOfType<ModuleOp>();
  llvm::MapVector<RunOp, SmallVector<WriteOp>> moved;
  for (WriteOp write : step.getBlock().getOps<WriteOp>()) {
    auto update = write.getOperand().getDefiningOp<RunOp>();
    if (module.lookupSymbol<VariableOp>(write.getVariable()).getKind() == VariableKind::buffer &&
        isBehindLoops(update) && write.getOperand().hasOneUse() &&
        findMakers(update, cast<OpResult>(write.getOperand()).getResultNumber(), isOfForward))
      moved[update].push_back(write);
  }
  for (auto &[update, writes] : moved) {
    llvm::DenseSet<Operation *> makers;
    SmallVector<unsigned> results;
    for (WriteOp write : writes) {
      results.push_back(cast<OpResult>(WriteOp(write).getOperand()).getResultNumber());
      llvm::DenseSet<Operation *> own = *findMakers(update, results.back(), isOfForward);
      makers.insert(own.begin(), own.end());
    }
    RunOp apart = runApart(update, results, makers, "move", FragmentKind::update, /*givesOperands=*/false);
    for (auto [write, result] : llvm::zip(writes, apart.getResults()))
      WriteOp(write).getOperandMutable().assign(result);
    dropResults(update, results);
  }
}

} // namespace par
