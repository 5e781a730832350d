// Gives every op of a step its stage: forward ops follow their latest operand, backward ops and updates their earliest;
// ops that depend only on inputs and constants are cloned to each stage that uses them.
#include "par/Dialect/VariableTable.h"
#include "par/Phases/Split/Passes.h"

#include "mlir/IR/IRMapping.h"

#include <map>
#include <set>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "par/Phases/Split/Passes.h.inc"

namespace {

/// Stages of one step's ops. -1: no stage, as the op depends only on inputs, constants and buffers. Frozen layers get a
/// stage as other layers do: they are not repeated on each stage that reads them.
class Stages {
public:
  Stages(StepOp step, int64_t count) : step(step), variables(step), count(count) {}

  LogicalResult run();

private:
  bool isFree(Operation *op);
  bool isCarriedSlice(Value value);
  LogicalResult bind(Operation *op);
  void bindFromUsers(Operation *op);
  void spreadFree(Operation *op);
  void combine(StageAllReduceOp reduce);
  void spreadCounter(WriteOp write);
  void copyWrite(WriteOp write, Value value) {
    OpBuilder builder(write->getContext());
    builder.setInsertionPointAfter(write);
    WriteOp::create(builder, write.getLoc(), value, write.getVariable());
  }
  int64_t ofValue(Value value);
  int64_t ofUse(OpOperand &use);
  SmallVector<Operation *> collect();
  bool isCounter(WriteOp write) { return variables.of(write).getKind() == VariableKind::counter; }

  StepOp step;
  VariableTable variables;
  int64_t count;
  DenseMap<Operation *, bool> free;
  DenseMap<Operation *, bool> backward;
  llvm::StringMap<int64_t> owners;              ///< first stage that uses a parameter
  std::vector<std::map<int64_t, Value>> wholes; ///< results of an all-reduce across stages, by stage
};

} // namespace

/// The tensor ops and stage_all_reduces of the step in order, those of loops in their place.
SmallVector<Operation *> Stages::collect() {
  SmallVector<Operation *> ops;
  step.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isTensorOp(op) || isa<StageAllReduceOp>(op))
      ops.push_back(op);
  });
  return ops;
}

/// Whether an argument of a loop is a microbatch's part of a carried variable.
bool Stages::isCarriedSlice(Value value) {
  auto argument = cast<BlockArgument>(value);
  auto loop = dyn_cast<LoopOp>(argument.getOwner()->getParentOp());
  auto read = loop && argument.getArgNumber() > 0
                  ? loop.getSlices()[argument.getArgNumber() - 1].getDefiningOp<ReadOp>()
                  : ReadOp();
  return read && variables.of(read).getKind() == VariableKind::carried;
}

/// True if no weight, state or carried value flows into the op.
bool Stages::isFree(Operation *op) {
  if (isa<StageAllReduceOp, CotangentOp>(op))
    return false;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (!source && isCarriedSlice(operand))
      return false;
    if (!source)
      continue;
    if (auto read = dyn_cast<ReadOp>(source)) {
      VariableKind kind = variables.of(read).getKind();
      if (kind == VariableKind::parameter || kind == VariableKind::frozen || kind == VariableKind::state ||
          kind == VariableKind::copy || kind == VariableKind::carried)
        return false;
    } else if (auto loop = dyn_cast<LoopOp>(source)) {
      Value inner = loop.getBody().front().getTerminator()->getOperand(cast<OpResult>(operand).getResultNumber());
      if (!inner.getDefiningOp() || !free.lookup(inner.getDefiningOp()))
        return false;
    } else if (!free.lookup(source)) {
      return false;
    }
  }
  return true;
}

/// Stage of a value; -1 for inputs and variables.
int64_t Stages::ofValue(Value value) {
  Operation *source = value.getDefiningOp();
  if (!source)
    return -1;
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<LoopOp>(source))
    return ofValue(loop.getBody().front().getTerminator()->getOperand(index));
  if (auto reduce = dyn_cast<StageAllReduceOp>(source))
    return ofValue(reduce.getOperand(index));
  if (auto read = dyn_cast<ReadOp>(source)) {
    VariableOp variable = variables.of(read);
    StringRef name = variable.getOf() ? *variable.getOf() : variable.getSymName();
    auto owner = owners.find(name);
    return owner == owners.end() ? -1 : owner->second;
  }
  return getStage(source).value_or(-1);
}

/// A forward op goes to the stage of its latest operand, a backward op or an update to that of its earliest. A forward
/// op that Annotate has placed is one outside of the loops, too: evaluation may have a loss there that training has in
/// them, and both give it on one stage.
LogicalResult Stages::bind(Operation *op) {
  bool inLoop = isa<LoopOp>(op->getParentOp());
  int64_t least = count, most = -1;
  Operation *latest = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    backward[op] |= source && backward.lookup(source);
    if (source && isa<ReadOp>(source) && inLoop)
      continue; // a parameter follows its users
    int64_t stage = ofValue(operand);
    if (stage < 0 || (source && free.lookup(source)))
      continue;
    least = std::min(least, stage);
    if (stage > most) {
      most = stage;
      latest = source;
    }
  }
  backward[op] |= isa<CotangentOp>(op);
  if (isa<StageAllReduceOp>(op))
    return success();
  std::optional<int64_t> hint = getStage(op);
  if (hint && inLoop && !backward[op] && most > *hint) {
    InFlightDiagnostic diagnostic = op->emitError() << "is on stage " << *hint << " but needs a value of stage " << most
                                                    << "; cut elsewhere";
    diagnostic.attachNote(latest->getLoc()) << "the value comes from here";
    return diagnostic;
  }
  if (hint && inLoop)
    return success();
  if (most >= 0)
    setStage(op, (inLoop || hint) && !backward[op] ? most : least);
  return success();
}

/// An op that only parameters flow into goes where it is first used.
void Stages::bindFromUsers(Operation *op) {
  if (isa<StageAllReduceOp>(op) || getStage(op) || free.lookup(op))
    return;
  int64_t least = count;
  for (OpOperand &use : op->getUses())
    if (int64_t stage = ofUse(use); stage >= 0)
      least = std::min(least, stage);
  setStage(op, least == count ? 0 : least);
}

/// Stage of the op that uses a value.
int64_t Stages::ofUse(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto yield = dyn_cast<YieldOp>(user)) {
    int64_t most = -1;
    for (OpOperand &outer : yield->getParentOp()->getResult(use.getOperandNumber()).getUses())
      most = std::max(most, ofUse(outer));
    return most;
  }
  if (auto write = dyn_cast<WriteOp>(user)) {
    auto owner = owners.find(write.getVariable());
    return owner == owners.end() ? -1 : owner->second;
  }
  return getStage(user).value_or(-1);
}

/// Clones a free op in or after a loop to every stage that uses it. Between loops it goes to the last such stage.
void Stages::spreadFree(Operation *op) {
  std::map<int64_t, SmallVector<OpOperand *>> users;
  for (OpOperand &use : op->getUses()) {
    auto write = dyn_cast<WriteOp>(use.getOwner());
    if (!write)
      users[std::max<int64_t>(ofUse(use), 0)].push_back(&use);
    else if (isCounter(write)) // any stage may have it in its loop, which recomputes it
      for (int64_t stage = 0; stage < count; ++stage)
        users.try_emplace(stage);
  }
  if (users.empty()) {
    setStage(op, 0);
    return;
  }
  bool fromDataSum = llvm::any_of(op->getOperands(), [](Value operand) { return operand.getDefiningOp<LoopOp>(); });
  setStage(op, users.rbegin()->first);
  // Between loops a value may go in either direction; in a loop forward ops get no value from later stages.
  if (fromDataSum && !isa<LoopOp>(op->getParentOp()))
    return;
  for (auto &[stage, uses] : users) {
    if (stage == users.rbegin()->first)
      break;
    // A loop's result is yielded on one stage.
    auto isYield = [](OpOperand *use) { return isa<YieldOp>(use->getOwner()); };
    if (!uses.empty() && llvm::all_of(uses, isYield))
      continue;
    Operation *clone = OpBuilder(op).clone(*op);
    setStage(clone, stage);
    for (OpOperand *use : uses)
      if (!isYield(use))
        use->set(clone->getResult(cast<OpResult>(use->get()).getResultNumber()));
    // A counter is updated on every stage that has it, from equal values.
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses()))
      if (auto write = dyn_cast<WriteOp>(use.getOwner()))
        copyWrite(write, clone->getResult(cast<OpResult>(use.get()).getResultNumber()));
  }
}

static Value join(OpBuilder &builder, StageAllReduceOp reduce, Value a, Value b) {
  if (reduce.getKind() == ReduceKind::sum)
    return AddOp::create(builder, reduce.getLoc(), a, b);
  if (reduce.getKind() == ReduceKind::max)
    return MaximumOp::create(builder, reduce.getLoc(), a, b);
  return AndOp::create(builder, reduce.getLoc(), a, b);
}

/// Adds up the operands of each stage: one operand a stage is left, and no reduction if there is one stage.
void Stages::combine(StageAllReduceOp reduce) {
  OpBuilder builder(reduce);
  std::map<int64_t, Value> partial;
  for (Value operand : reduce.getOperands()) {
    int64_t stage = std::max<int64_t>(ofValue(operand), 0);
    Value &sum = partial[stage];
    if (!sum) {
      sum = operand;
      continue;
    }
    sum = join(builder, reduce, sum, operand);
    setStage(sum.getDefiningOp(), stage);
  }
  std::map<int64_t, Value> whole = partial;
  std::set<int64_t> wanted;
  for (auto [operand, result] : llvm::zip(reduce.getOperands(), reduce.getResults()))
    for (OpOperand &use : result.getUses())
      wanted.insert(std::max<int64_t>(ofUse(use) >= 0 ? ofUse(use) : ofValue(operand), 0));
  if (partial.size() > 1 && wanted.size() == 1) {
    // Only one stage uses the sum: the others send it their parts.
    Value sum = partial.begin()->second;
    for (auto &[stage, value] : llvm::drop_begin(partial)) {
      sum = join(builder, reduce, sum, value);
      setStage(sum.getDefiningOp(), *wanted.begin());
    }
    for (auto &[stage, value] : whole)
      value = sum;
  } else if (partial.size() > 1) {
    SmallVector<Value> operands;
    for (auto &[stage, value] : partial)
      operands.push_back(value);
    auto combined =
        StageAllReduceOp::create(builder, reduce.getLoc(), ValueRange(operands).getTypes(), reduce.getKind(), operands);
    for (auto [at, result] : llvm::zip(whole, combined.getResults()))
      at.second = result;
  }
  for (auto [operand, result] : llvm::zip(reduce.getOperands(), reduce.getResults()))
    result.replaceAllUsesWith(whole[std::max<int64_t>(ofValue(operand), 0)]);
  reduce.erase();
  wholes.push_back(std::move(whole));
}

/// A counter whose new value depends on an all-reduce across stages. Each other stage computes it from its own result
/// of the reduction. A stage without a part in the reduction computes it from the first stage's result.
void Stages::spreadCounter(WriteOp write) {
  Operation *source = write.getOperand().getDefiningOp();
  if (!source || free.lookup(source) || !isTensorOp(source))
    return;
  llvm::SetVector<Operation *> slice;
  DenseMap<Value, const std::map<int64_t, Value> *> leaves;
  auto visit = [&](auto &self, Value value) -> void {
    for (const auto &whole : wholes)
      for (auto &[stage, own] : whole)
        if (own == value) {
          leaves[value] = &whole;
          return;
        }
    Operation *op = value.getDefiningOp();
    if (!op || !isTensorOp(op) || free.lookup(op) || slice.contains(op))
      return;
    for (Value operand : op->getOperands())
      self(self, operand);
    slice.insert(op);
  };
  visit(visit, write.getOperand());
  int64_t home = getStage(source).value_or(0);
  OpBuilder builder(write);
  for (int64_t stage = 0; stage < count; ++stage) {
    if (stage == home)
      continue;
    IRMapping mapping;
    for (auto &[value, whole] : leaves)
      mapping.map(value, whole->count(stage) ? whole->at(stage) : whole->begin()->second);
    for (Operation *op : slice)
      setStage(builder.clone(*op, mapping), stage);
    copyWrite(write, mapping.lookup(write.getOperand()));
  }
}

LogicalResult Stages::run() {
  for (Operation *op : collect())
    free[op] = isFree(op);
  // In the loops first: they decide which stage owns a parameter.
  SmallVector<Operation *> ops = collect();
  auto inLoop = [](Operation *op) { return isa<LoopOp>(op->getParentOp()); };
  for (Operation *op : ops)
    if (inLoop(op) && !free.lookup(op) && failed(bind(op)))
      return failure();
  for (Operation *op : llvm::reverse(ops))
    if (inLoop(op))
      bindFromUsers(op);
  for (auto read : step.getBlock().getOps<ReadOp>()) {
    VariableKind kind = variables.of(read).getKind();
    if (kind != VariableKind::parameter && kind != VariableKind::frozen)
      continue;
    int64_t least = count;
    for (Operation *user : read->getUsers())
      if (inLoop(user) && !free.lookup(user) && getStage(user))
        least = std::min(least, *getStage(user));
    if (least < count)
      owners[read.getVariable()] = least;
  }
  for (Operation *op : ops)
    if (!inLoop(op) && !free.lookup(op) && failed(bind(op)))
      return failure();
  for (Operation *op : llvm::reverse(ops))
    if (!inLoop(op))
      bindFromUsers(op);
  for (auto reduce : llvm::make_early_inc_range(step.getBlock().getOps<StageAllReduceOp>()))
    combine(reduce);
  for (WriteOp write : llvm::to_vector(step.getBlock().getOps<WriteOp>()))
    if (isCounter(write))
      spreadCounter(write);
  SmallVector<Operation *> spread;
  for (Operation *op : ops)
    if (free.lookup(op))
      spread.push_back(op);
  for (Operation *op : llvm::reverse(spread))
    spreadFree(op);
  return success();
}

namespace {
struct AssignStagesPass : impl::AssignStagesPassBase<AssignStagesPass> {
  void runOnOperation() override {
    int64_t count = llvm::range_size(getOperation().getOps<StageOp>());
    for (StepOp step : getOperation().getOps<StepOp>())
      if (failed(Stages(step, count).run()))
        return signalPassFailure();
  }
};
} // namespace

} // namespace par
