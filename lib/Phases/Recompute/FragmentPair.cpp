// A forward fragment and its backward: the values that the first keeps for the second, and the rewrite of both when
// some of them are recomputed in the backward instead.
#include "FragmentPair.h"

#include "par/Dialect/Interfaces/Cost.h"

using namespace mlir;

namespace par {

static FragmentOp fragmentOf(RunOp run) {
  return SymbolTable::lookupNearestSymbolFrom<FragmentOp>(run, run.getFragmentAttr());
}

FragmentPair::FragmentPair(RunOp forwardRun, RunOp backwardRun)
    : forwardRun(forwardRun), backwardRun(backwardRun), forward(fragmentOf(forwardRun)),
      backward(fragmentOf(backwardRun)) {}

std::vector<FragmentPair> FragmentPair::findAll(ModuleOp module) {
  std::vector<FragmentPair> pairs;
  module.walk([&](LoopOp loop) {
    llvm::StringMap<SmallVector<RunOp, 1>> forwards; // by stage
    for (auto run : loop.getBody().front().getOps<RunOp>()) {
      FragmentOp fragment = fragmentOf(run); // found by its name among all symbols, so once
      if (fragment.getKind() == FragmentKind::forward)
        forwards[fragment.getStage()].push_back(run);
      if (fragment.getKind() == FragmentKind::backward)
        for (RunOp forward : forwards[fragment.getStage()])
          pairs.push_back({forward, run});
    }
  });
  return pairs;
}

ValueSet FragmentPair::getResiduals() const {
  ValueSet values;
  Operation *results = FragmentOp(forward).getTerminator();
  for (Value operand : RunOp(backwardRun).getOperands())
    if (operand.getDefiningOp() == forwardRun)
      values.insert(results->getOperand(cast<OpResult>(operand).getResultNumber()));
  return values;
}

//===-- What costs nothing -------------------------------------------------------------------===//

/// Whether the backward takes the argument anyway, or it exists all the time: a variable, an input, a value made before
/// the loop. A value received from another stage is freed unless the backward takes it.
bool FragmentPair::isAtHand(BlockArgument argument) const {
  Value outside = RunOp(forwardRun).getOperands()[argument.getArgNumber()];
  return llvm::is_contained(RunOp(backwardRun).getOperands(), outside) || !isReceived(argument);
}

bool FragmentPair::isReceived(BlockArgument argument) const {
  Operation *source = RunOp(forwardRun).getOperands()[argument.getArgNumber()].getDefiningOp();
  return source && source->getBlock() == forwardRun->getBlock();
}

bool FragmentPair::isMadeBeforeLoop(BlockArgument argument) const {
  Operation *source = RunOp(forwardRun).getOperands()[argument.getArgNumber()].getDefiningOp();
  return source && source->getBlock() != forwardRun->getBlock();
}

bool FragmentPair::isForBackwardAlone(Operation *op) const {
  return llvm::all_of(op->getUses(), [&](OpOperand &use) {
    return use.getOwner() == FragmentOp(forward).getTerminator() &&
           llvm::all_of(RunOp(forwardRun).getResult(use.getOperandNumber()).getUsers(),
                        [&](Operation *user) { return user == backwardRun; });
  });
}

/// Whether arithmetic makes the value and an op reads it that is no part of a generated kernel, so that it is in
/// memory: one with many operations for each element.
static bool isComputedForMatmul(Value value) {
  constexpr int64_t many = 32;
  int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
  return getCost(value.getDefiningOp()).flops > 0 && llvm::any_of(value.getUsers(), [&](Operation *user) {
           OpCost cost = getCost(user);
           return !cost.fusable && cost.flops / many > elements;
         });
}

/// Whether the op joins a kernel that is there anyway; each kernel knows its rank's place.
static bool joinsKernels(Operation *op) { return getCost(op).fusable || isa<AxisIndexOp>(op); }

llvm::DenseSet<Value> FragmentPair::findCheap(const ValueSet &saved, bool keepOperands, int64_t inFlight) const {
  // `common`: the same in every microbatch.
  llvm::DenseSet<Value> known, common, cheap;
  Block &body = FragmentOp(forward).getBlock();
  for (BlockArgument argument : body.getArguments()) {
    if (isAtHand(argument))
      known.insert(argument);
    if (isMadeBeforeLoop(argument))
      common.insert(argument);
    if (saved.contains(argument)) // the backward takes it from the forward's source
      cheap.insert(argument);
  }
  known.insert(saved.begin(), saved.end());
  for (Operation &op : body.without_terminator()) {
    bool free = joinsKernels(&op) || isForBackwardAlone(&op);
    if (!free || !llvm::all_of(op.getOperands(), [&](Value operand) { return known.contains(operand); }))
      continue;
    bool once = inFlight > 1 && llvm::all_of(op.getOperands(), [&](Value operand) { return common.contains(operand); });
    if (once)
      common.insert(op.result_begin(), op.result_end());
    for (Value result : op.getResults()) {
      known.insert(result);
      if (saved.contains(result) && (once || !(keepOperands && isComputedForMatmul(result))))
        cheap.insert(result);
    }
  }
  return cheap;
}

llvm::DenseSet<Value> FragmentPair::findFree() const {
  llvm::DenseSet<Value> free;
  Block &body = FragmentOp(forward).getBlock();
  for (BlockArgument argument : body.getArguments())
    if (isAtHand(argument))
      free.insert(argument);
  for (Operation &op : body.without_terminator())
    if (joinsKernels(&op) && llvm::all_of(op.getOperands(), [&](Value operand) { return free.contains(operand); }))
      free.insert(op.result_begin(), op.result_end());
  return free;
}

//===-- Rewriting ----------------------------------------------------------------------------===//

DistType distOfShards(RankedTensorType local, FlatSymbolRefAttr stage, MeshAttr mesh) {
  MLIRContext *context = local.getContext();
  auto sharding = ShardingAttr::getReplicated(context, local.getRank());
  if (local.getRank() == 0)
    return DistType::get(context, local, stage, sharding.withUnreduced(mesh.getNames()));
  SmallVector<int64_t> shape(local.getShape());
  shape.front() *= mesh.getRanks();
  return DistType::get(context, local.clone(shape), stage, sharding.withDim(0, mesh.getNames()));
}

/// The step-level type of a value: its run's, or that of a new residual.
DistType FragmentPair::distTypeOf(Value value) const {
  for (auto [inner, outer] : llvm::zip(FragmentOp(forward).getTerminator()->getOperands(), forwardRun->getResults()))
    if (inner == value)
      return cast<DistType>(outer.getType());
  auto stage = FragmentOp(forward).getStageAttr();
  return distOfShards(cast<RankedTensorType>(value.getType()), stage, getMesh(forward, stage));
}

/// A new argument of the backward for a value of the forward.
Value FragmentPair::take(Value value) {
  taken.push_back(value);
  return backward.getBlock().addArgument(value.getType(), value.getLoc());
}

Value FragmentPair::materialize(Value value, OpBuilder &builder, llvm::function_ref<bool(Value)> keep) {
  if (Value there = inBackward.lookup(value))
    return there;
  Operation *source = value.getDefiningOp();
  if (!source || keep(value))
    return inBackward[value] = take(value);
  IRMapping mapping;
  for (Value operand : source->getOperands())
    mapping.map(operand, materialize(operand, builder, keep));
  Operation *clone = builder.clone(*source, mapping);
  for (auto [old, now] : llvm::zip(source->getResults(), clone->getResults()))
    inBackward[old] = now;
  return inBackward[value];
}

void eraseDeadOps(Block &block) {
  for (Operation *op = &block.back(), *before; op; op = before) {
    before = op->getPrevNode();
    if (!op->hasTrait<OpTrait::IsTerminator>() && op->use_empty() && isMemoryEffectFree(op))
      op->erase();
  }
}

void FragmentPair::recompute(llvm::function_ref<bool(Value)> keep) {
  // The forward's values that the backward's old arguments stand for.
  DenseMap<Value, Value> meaning;
  Operation *results = forward.getTerminator();
  for (auto [operand, argument] : llvm::zip(backwardRun.getOperands(), backward.getArguments())) {
    if (operand.getDefiningOp() == forwardRun) {
      meaning[argument] = results->getOperand(cast<OpResult>(operand).getResultNumber());
      continue;
    }
    for (auto [outer, inner] : llvm::zip(forwardRun.getOperands(), forward.getArguments()))
      if (outer == operand)
        inBackward.try_emplace(inner, argument);
  }
  for (Operation &op : backward.getBlock())
    for (OpOperand &operand : op.getOpOperands())
      if (Value value = meaning.lookup(operand.get())) {
        OpBuilder builder(&op);
        operand.set(materialize(value, builder, keep));
      }
  rebuildForward();
  rebuildBackward();
}

/// The forward returns the values that the rest of the step uses, then the new operands of the backward.
void FragmentPair::rebuildForward() {
  Operation *results = forward.getTerminator();
  SmallVector<Value> inner;
  SmallVector<Type> types;
  SmallVector<int64_t> newIndex(results->getNumOperands(), -1);
  for (auto [index, outer] : llvm::enumerate(forwardRun.getResults()))
    if (llvm::any_of(outer.getUsers(), [&](Operation *user) { return user != backwardRun; }) ||
        llvm::is_contained(taken, results->getOperand(index))) {
      newIndex[index] = inner.size();
      inner.push_back(results->getOperand(index));
      types.push_back(outer.getType());
    }
  for (Value value : taken)
    if (value.getDefiningOp() && !llvm::is_contained(inner, value)) {
      types.push_back(distTypeOf(value));
      inner.push_back(value);
    }
  results->setOperands(inner);
  eraseDeadOps(forward.getBlock());
  llvm::BitVector unused(forward.getNumArguments());
  SmallVector<Value> operands;
  for (BlockArgument argument : forward.getArguments()) {
    if (argument.use_empty() && !llvm::is_contained(taken, argument))
      unused.set(argument.getArgNumber());
    else
      operands.push_back(forwardRun.getOperands()[argument.getArgNumber()]);
  }
  forward.getBlock().eraseArguments(unused);
  forward.setFunctionType(
      FunctionType::get(forward.getContext(), forward.getBlock().getArgumentTypes(), ValueRange(inner).getTypes()));
  OpBuilder builder(forwardRun);
  auto run = RunOp::create(builder, forwardRun.getLoc(), types, forwardRun.getFragment(), operands);
  for (auto [index, outer] : llvm::enumerate(forwardRun.getResults()))
    if (newIndex[index] >= 0)
      outer.replaceUsesWithIf(run.getResult(newIndex[index]),
                              [&](OpOperand &use) { return use.getOwner() != backwardRun; });
  std::swap(forwardRun, run);
  // The old run stays until the backward has let go of it.
  inBackward.clear();
  for (OpOperand &operand : backwardRun->getOpOperands())
    if (operand.get().getDefiningOp() == run)
      operand.drop();
  run.erase();
}

void FragmentPair::rebuildBackward() {
  eraseDeadOps(backward.getBlock());
  SmallVector<Value> all(backwardRun.getOperands()), operands;
  for (Value value : taken) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      all.push_back(forwardRun.getOperands()[argument.getArgNumber()]);
    else
      all.push_back(forwardRun.getResult(llvm::find(forward.getTerminator()->getOperands(), value) -
                                         forward.getTerminator()->operand_begin()));
  }
  taken.clear();
  llvm::BitVector unused(all.size());
  for (auto [argument, operand] : llvm::zip(backward.getBlock().getArguments(), all)) {
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
    else
      operands.push_back(operand);
  }
  backward.getBlock().eraseArguments(unused);
  backward.setFunctionType(
      FunctionType::get(backward.getContext(), backward.getBlock().getArgumentTypes(), backward.getResultTypes()));
  OpBuilder builder(backwardRun);
  auto run =
      RunOp::create(builder, backwardRun.getLoc(), backwardRun.getResultTypes(), backwardRun.getFragment(), operands);
  backwardRun.replaceAllUsesWith(run.getResults());
  backwardRun.erase();
  backwardRun = run;
}

} // namespace par
