// Groups ops of one stage into fragments: in a loop by stage and by forward or backward, outside it by levels of
// dependence across stages. Constants and broadcasts of values are cloned to their users.
#include "GroupOps.h"

#include "par/Dialect/Interfaces/Cost.h"

#include <map>

using namespace mlir;

namespace par {

int64_t home(Value value) {
  Operation *source = value.getDefiningOp();
  if (!source)
    return -1;
  if (isa<ReadOp>(source))
    return -1;
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<LoopOp>(source))
    return std::max<int64_t>(home(loop.getBody().front().getTerminator()->getOperand(index)), 0);
  if (auto reduce = dyn_cast<StageAllReduceOp>(source))
    return home(reduce.getOperand(index));
  return getStage(source).value_or(0);
}

/// Ops that move or broadcast elements of values that no microbatch changes (a norm's weight over its rows), and ops
/// that fuse with them. Their results may be as large as activations, and a variable gathered for them would be kept
/// with them.
static DenseSet<Operation *> findSpread(Block &body) {
  DenseSet<Operation *> unchanged, spread;
  for (Operation &op : body.without_terminator()) {
    if (!isTensorOp(&op) || isa<CotangentOp>(op) || !isMemoryEffectFree(&op) ||
        !llvm::all_of(op.getOperands(), [&](Value operand) {
          return operand.getParentBlock() != &body || unchanged.contains(operand.getDefiningOp());
        }))
      continue;
    unchanged.insert(&op);
    bool behind =
        llvm::any_of(op.getOperands(), [&](Value operand) { return spread.contains(operand.getDefiningOp()); });
    if (getCost(&op).fusable && (behind || movesElements(&op)))
      spread.insert(&op);
  }
  return spread;
}

/// Clones an op right before itself for some of its uses.
static Operation *cloneFor(Operation &op, llvm::function_ref<bool(OpOperand &)> uses) {
  Operation *clone = OpBuilder(&op).clone(op);
  for (auto [old, now] : llvm::zip(op.getResults(), clone->getResults()))
    old.replaceUsesWithIf(now, uses);
  return clone;
}

/// Whether each op of a loop's body is backward: it depends on a cotangent, or only backward ops use it and it needs no
/// residual besides those kept for other ops. Ops on constants and on the microbatch index, and broadcasts of variables
/// are recomputed.
static DenseMap<Operation *, bool> findBackward(Block &body) {
  DenseSet<Operation *> spread = findSpread(body);
  DenseMap<Operation *, bool> back, cheap;
  for (Operation &op : body.without_terminator()) {
    back[&op] = isa<CotangentOp>(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                  return operand.getDefiningOp() && back.lookup(operand.getDefiningOp());
                });
    cheap[&op] = !back[&op] && llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return source ? cheap.lookup(source) : operand == body.getArgument(0);
    });
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body.without_terminator()))) {
    if (back[&op] || op.use_empty())
      continue;
    auto usedBack = [&](OpOperand &use) { return back.lookup(use.getOwner()); };
    // The backward of a later stage comes before that of this one.
    auto usedBackHere = [&](OpOperand &use) { return usedBack(use) && getStage(use.getOwner()) == getStage(&op); };
    bool all = llvm::all_of(op.getUses(), usedBack), any = llvm::any_of(op.getUses(), usedBack);
    if (cheap.lookup(&op) && any && !all) {
      back[cloneFor(op, usedBack)] = true;
      continue;
    }
    if (!cheap.lookup(&op) && spread.contains(&op)) {
      if (llvm::all_of(op.getUses(), usedBackHere))
        back[&op] = true;
      else if (llvm::any_of(op.getUses(), usedBackHere))
        back[cloneFor(op, usedBackHere)] = true;
      continue;
    }
    auto kept = [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return !source || source->getBlock() != &body || cheap.lookup(source) || spread.contains(source) ||
             llvm::any_of(operand.getUsers(), [&](Operation *user) { return back.lookup(user); });
    };
    bool oneStage = llvm::all_of(op.getUsers(), [&](Operation *user) { return getStage(user) == getStage(&op); });
    back[&op] = all && oneStage && (cheap.lookup(&op) || llvm::all_of(op.getOperands(), kept));
  }
  return back;
}

SmallVector<OpGroup> groupLoop(LoopOp loop, int64_t count) {
  SmallVector<OpGroup> forward, backward;
  for (int64_t stage = 0; stage < count; ++stage) {
    forward.push_back({stage, FragmentKind::forward, {}});
    backward.push_back({count - 1 - stage, FragmentKind::backward, {}});
  }
  DenseMap<Operation *, bool> back = findBackward(loop.getBody().front());
  for (Operation &op : loop.getBody().front().without_terminator()) {
    int64_t stage = getStage(&op).value_or(0);
    (back[&op] ? backward[count - 1 - stage] : forward[stage]).ops.push_back(&op);
  }
  // A loop followed by another loop sums values that depend only on data.
  auto later = llvm::make_range(std::next(loop->getIterator()), loop->getBlock()->end());
  bool before = llvm::any_of(later, [](Operation &op) { return isa<LoopOp>(op); });
  if (before)
    for (OpGroup &group : forward)
      group.kind = FragmentKind::before;
  llvm::append_range(forward, backward);
  llvm::erase_if(forward, [](const OpGroup &group) { return group.ops.empty(); });
  return forward;
}

/// Gives ops that depend only on constants the levels of their users: one clone for each, so that no constant is a
/// result of one fragment and an argument of another. Adds the clones to `ops`.
static void spreadConstants(SmallVectorImpl<Operation *> &ops, ArrayRef<Operation *> constants,
                            DenseMap<Operation *, int64_t> &levels) {
  for (Operation *op : llvm::reverse(constants)) {
    std::map<int64_t, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : op->getUses()) {
      auto level = levels.find(use.getOwner());
      bool here =
          level != levels.end() && !isa<StageAllReduceOp>(use.getOwner()) && getStage(use.getOwner()) == getStage(op);
      uses[here ? level->second : 0].push_back(&use);
    }
    levels[op] = uses.empty() ? 0 : uses.begin()->first;
    for (auto &[level, list] : uses) {
      if (level == levels[op])
        continue;
      Operation *clone = OpBuilder(op).clone(*op);
      levels[clone] = level;
      ops.push_back(clone);
      for (OpOperand *use : list)
        use->set(clone->getResult(cast<OpResult>(use->get()).getResultNumber()));
    }
  }
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

/// The level of each op: above that of its operands from other stages. Clones constants.
static DenseMap<Operation *, int64_t> findLevels(SmallVectorImpl<Operation *> &ops) {
  DenseMap<Operation *, int64_t> levels;
  llvm::SetVector<Operation *> constants;
  for (Operation *op : ops) {
    if (isTensorOp(op) &&
        llvm::all_of(op->getOperands(), [&](Value operand) { return constants.contains(operand.getDefiningOp()); })) {
      constants.insert(op);
      continue;
    }
    int64_t level = 0, stage = home(op->getResult(0));
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      auto found = source ? levels.find(source) : levels.end();
      if (found == levels.end())
        continue;
      bool crosses = isa<StageAllReduceOp>(source) || home(operand) != stage;
      level = std::max(level, found->second + (crosses ? 1 : 0));
    }
    levels[op] = level;
  }
  spreadConstants(ops, constants.getArrayRef(), levels);
  return levels;
}

SmallVector<OpGroup> groupBehind(ArrayRef<Operation *> behind, int64_t count) {
  std::map<std::pair<int64_t, int64_t>, OpGroup> groups;
  bool last = llvm::none_of(llvm::make_range(std::next(behind.back()->getIterator()), behind.back()->getBlock()->end()),
                            [](Operation &op) { return isa<LoopOp>(op); });
  SmallVector<Operation *> ops(behind);
  DenseMap<Operation *, int64_t> levels = findLevels(ops);
  for (Operation *op : ops) {
    int64_t level = levels[op], stage = home(op->getResult(0));
    if (isa<StageAllReduceOp>(op)) {
      // Comes between its level and the next one, after all stages.
      groups[{level, count}].ops.push_back(op);
      continue;
    }
    OpGroup &group = groups[{level, stage}];
    group.stage = stage;
    group.kind = last ? FragmentKind::update : FragmentKind::before;
    group.ops.push_back(op);
  }
  SmallVector<OpGroup> result;
  for (auto &[key, group] : groups)
    result.push_back(std::move(group));
  return result;
}

} // namespace par
