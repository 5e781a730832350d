// Plans the buffers of a device's program: variables, inputs and results, with as many slots as microbatches are live
// at a time in the step's order, and copies of older parameter versions for asynchronous schedules.
#include "Buffers.h"

#include "par/Dialect/Calls.h"
#include "par/Dialect/Space.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace par {

BufferPlan planState(VariableOp variable, DistType dist, RankedTensorType local, int64_t microbatches, int64_t calls) {
  BufferPlan plan;
  plan.name = plan.of = variable.getSymName().str();
  plan.kind = variable.getKind() == VariableKind::hyperparameter ? BufferKind::hyperparameter : BufferKind::state;
  plan.type = local;
  plan.dist = dist;
  plan.perVersion = plan.kind == BufferKind::hyperparameter && calls > 1;
  plan.perMicrobatch = microbatches > 0;
  plan.depth = plan.perVersion ? calls : std::max<int64_t>(microbatches, 1);
  return plan;
}

void Buffers::place(Value value, BufferPlan plan) {
  index[value] = plans.size();
  plans.push_back(std::move(plan));
}

/// Variables and inputs have buffers of their own.
void Buffers::placeOperand(Value value) {
  if (index.contains(value) || tasks.producer(value) >= 0)
    return;
  StepOp step = tasks.step;
  auto dist = cast<DistType>(value.getType());
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<LoopOp>(argument.getOwner()->getParentOp()) : LoopOp();
  Value whole = loop ? loop.getSlices()[argument.getArgNumber() - 1] : value;
  if (auto read = whole.getDefiningOp<ReadOp>()) {
    VariableOp variable = tasks.variableOf(read);
    return place(
        value, planState(variable, dist, tasks.localType(value), tasks.microbatchesOf(variable), getCalls(tasks.step)));
  }
  BufferPlan plan;
  plan.kind = BufferKind::input;
  plan.dist = dist;
  plan.type = tasks.localType(value);
  plan.perMicrobatch = loop != nullptr;
  unsigned number = cast<BlockArgument>(whole).getArgNumber();
  plan.of = step.getInputs() ? cast<StringAttr>((*step.getInputs())[number]).str() : std::to_string(number);
  plan.name = tasks.prefix + "input." + plan.of;
  place(value, std::move(plan));
}

/// The variable of the gradient, or summand of one, that a loop accumulates in this result; else nothing.
static StringRef labelOf(OpResult sum) {
  auto labels = cast<LoopOp>(sum.getOwner()).getLabels();
  if (!labels || sum.getResultNumber() >= labels->size())
    return "";
  return cast<StringAttr>((*labels)[sum.getResultNumber()]).getValue();
}

void Buffers::placeResult(const Task &task, Value value) {
  BufferPlan plan;
  plan.type = tasks.localType(value);
  plan.name = tasks.prefix + task.name;
  auto result = cast<OpResult>(value);
  if (auto loop = dyn_cast<LoopOp>(result.getOwner())) {
    StringRef label = labelOf(result);
    plan.name += label.empty() ? (".sum" + Twine(result.getResultNumber())).str() : (".sum." + label).str();
    // A tied parameter has several summands.
    if (llvm::any_of(plans, [&](const BufferPlan &other) { return other.name == plan.name; }))
      plan.name += "." + std::to_string(result.getResultNumber());
  } else {
    bool inTail = llvm::is_contained(task.tail, result.getOwner());
    plan.perMicrobatch = task.loop && !inTail;
    ArrayRef<Operation *> all = inTail ? task.tail : task.ops;
    unsigned number = result.getResultNumber();
    for (Operation *op : llvm::make_range(all.begin(), llvm::find(all, result.getOwner())))
      number += op->getNumResults();
    plan.name += (inTail ? ".last." : ".") + std::to_string(number);
  }
  place(value, std::move(plan));
}

/// A reduced sum takes the place of a sum without other users.
void Buffers::reuseSums() {
  for (const Task &task : tasks.list)
    for (Operation *op : task.tail) {
      if (op->getNumOperands() != 1 || op->getNumResults() != 1)
        continue;
      Value sum = op->getOperand(0), reduced = op->getResult(0);
      if (sum.hasOneUse() && index.contains(sum) && index.contains(reduced) && of(sum).type == of(reduced).type &&
          of(sum).kind == BufferKind::temp)
        index[reduced] = index[sum];
    }
}

/// Marks the storage of a gradient with its variable and sharding, for verifiers of accumulation. The storage is the
/// sum, or the last microbatch's value made from it if the sum is not stored to the end.
void Buffers::nameAccumulators() {
  for (const Task &task : tasks.list)
    for (OpResult sum : task.sums) {
      StringRef label = labelOf(sum);
      if (label.empty())
        continue;
      Value kept = sum;
      auto reduction = llvm::find_if(task.tail, [&](Operation *op) { return op->getOperand(0) == sum; });
      if (reduction != task.tail.end() && tasks.isReducedOnly(task, sum))
        kept = (*reduction)->getResult(0);
      if (!index.contains(kept) || of(kept).kind != BufferKind::temp)
        continue;
      BufferPlan &plan = plans[index[kept]];
      plan.of = label.str();
      plan.dist = cast<DistType>(kept.getType());
    }
}

/// Backward takes them in the same microbatch.
void Buffers::markSaved() {
  auto readsBack = [](const Task &task) { return task.slot != SlotKind::Forward; };
  for (const Task &task : llvm::make_filter_range(tasks.list, readsBack))
    for (Value operand : tasks.operandsOf(task)) {
      int64_t producer = tasks.producer(operand);
      if (producer < 0 || tasks.list[producer].slot != SlotKind::Forward || !index.contains(operand))
        continue;
      BufferPlan &plan = plans[index[operand]];
      plan.saved = plan.perMicrobatch && plan.kind == BufferKind::temp;
      auto run = plan.saved ? operand.getDefiningOp<RunOp>() : RunOp();
      plan.moved = run && isMoved(tasks.fragmentOf(run), cast<OpResult>(operand).getResultNumber());
    }
}

/// Whether a microbatch reads the old value after the same microbatch's new value is made.
bool Buffers::isReadLater(Value old, Value value) const {
  llvm::SmallSet<int64_t, 8> made;
  for (const TaskInstance &instance : order.instances) {
    if (static_cast<int64_t>(instance.task) == tasks.producer(value))
      made.insert(instance.microbatch);
    else if (made.contains(instance.microbatch) && llvm::is_contained(operands[instance.task], old))
      return true;
  }
  return false;
}

/// The new value overwrites the old one, unless the old one is read later.
void Buffers::placeWrite(WriteOp write) {
  Value value = tasks.canonical(write.getOperand());
  VariableOp variable = tasks.variableOf(write);
  BufferPlan state = planState(variable, cast<DistType>(value.getType()), tasks.localType(value),
                               tasks.microbatchesOf(variable), getCalls(tasks.step));
  Value old = tasks.readOf(variable, tasks.deviceOf(value));
  if (state.perMicrobatch) {
    if (old && isReadLater(old, value))
      afterLoop.push_back({value, state});
    else if (of(value).kind == BufferKind::temp)
      place(value, state);
    else
      alsoStored[value].push_back(state);
    return;
  }
  int64_t producer = tasks.producer(value);
  bool made = false, readAfter = false;
  for (const TaskInstance &instance : order.instances) { // of the first call; the others are alike
    const Task &task = tasks.list[instance.task];
    if (instance.task == producer && instance.microbatch == task.count() - 1)
      made = true;
    else if (made && old && instance.microbatch < task.count() && llvm::is_contained(operands[instance.task], old))
      readAfter = true;
  }
  bool inLoop =
      made && tasks.list[producer].loop && !llvm::is_contained(tasks.list[producer].tail, value.getDefiningOp());
  // A loop's sum is written there by the last microbatch.
  bool summed = inLoop && isa<LoopOp>(value.getDefiningOp()) && getCalls(tasks.step) > 1;
  // Late writes read at the end.
  bool readElsewhere = old && llvm::any_of(afterLoop, [&](auto &other) { return other.first == old; });
  if (!made || readAfter || (inLoop && !summed) || readElsewhere) {
    afterLoop.push_back({value, state});
  } else if (of(value).kind == BufferKind::temp && !of(value).perMicrobatch &&
             !(summed && tasks.list[producer].count() > 1)) {
    place(value, state);
  } else {
    alsoStored[value].push_back(state);
  }
}

namespace {
/// First and last use of a microbatch's slot, by position in the order and by simulated time.
struct Life {
  int64_t first = -1, last = -1, start = 0, end = 0;

  void extend(int64_t position, const TaskInstance &instance) {
    if (first < 0) {
      first = position;
      start = instance.start;
    }
    last = position;
    end = std::max(end, instance.end);
  }
};
} // namespace

/// Whether a depth of `depth` slots is enough: no microbatch needs a slot that another one still uses. `order` is that
/// of the lives' begins.
static bool fitsSlots(ArrayRef<Life> lives, ArrayRef<unsigned> order, int64_t depth) {
  SmallVector<Life> latest(depth);
  for (unsigned microbatch : order) {
    const Life &life = lives[microbatch];
    Life &before = latest[microbatch % depth];
    if (before.first >= 0 && (life.first <= before.last || life.start < before.end))
      return false;
    before.first = life.first;
    before.last = std::max(before.last, life.last);
    before.end = std::max(before.end, life.end);
  }
  return true;
}

/// The minimum depth at which microbatch modulo depth is never a slot in use.
static int64_t minSlots(ArrayRef<Life> lives) {
  SmallVector<unsigned> order;
  for (unsigned microbatch = 0; microbatch < lives.size(); ++microbatch)
    if (lives[microbatch].first >= 0)
      order.push_back(microbatch);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return lives[a].first < lives[b].first; });
  int64_t depth = 1, count = lives.size();
  while (depth < count && !fitsSlots(lives, order, depth))
    ++depth;
  return depth;
}

void Buffers::countSlots() {
  llvm::MapVector<unsigned, SmallVector<Life>> lives;
  auto extend = [&](Value value, int64_t position, const TaskInstance &instance) {
    auto found = index.find(value);
    if (found == index.end() || !plans[found->second].perMicrobatch || plans[found->second].kind == BufferKind::state)
      return;
    SmallVector<Life> &list = lives[found->second];
    list.resize(std::max<size_t>(list.size(), instance.microbatch + 1));
    list[instance.microbatch].extend(position, instance);
  };
  std::vector<SmallVector<Value>> touched = operands;
  for (auto [values, task] : llvm::zip(touched, tasks.list))
    llvm::append_range(values, tasks.resultsOf(task));
  for (auto [position, instance] : llvm::enumerate(order.instances))
    for (Value value : touched[instance.task])
      extend(value, position, instance);
  for (auto &[plan, list] : lives) {
    plans[plan].depth = minSlots(list);
    plans[plan].several = list.size() > 1;
  }
  // A write at the end covers all microbatches.
  for (auto &[value, state] : afterLoop)
    if (state.perMicrobatch)
      plans[index[value]].depth = state.depth;
}

/// Buffers for the versions that updates replace.
LogicalResult Buffers::keepVersions() {
  std::set<std::pair<unsigned, std::string>> lateStates;
  for (auto &[value, state] : afterLoop)
    lateStates.insert({tasks.deviceOf(value), state.name});
  auto found = Versions::compute(tasks, order, lateStates);
  if (failed(found))
    return failure();
  versions.emplace(*found);
  for (WriteOp write : tasks.writes()) {
    Value value = tasks.canonical(write.getOperand());
    VariableOp variable = tasks.variableOf(write);
    unsigned device = tasks.deviceOf(value);
    int64_t depth = versions->countOlder(device, variable);
    if (depth == 0)
      continue;
    BufferPlan plan;
    plan.name = tasks.prefix + variable.getSymName().str() + ".older";
    plan.type = tasks.localType(value);
    plan.perVersion = true;
    plan.depth = depth;
    older[{device, variable.getSymName().str()}] = plan;
  }
  return success();
}

const BufferPlan *Buffers::olderOf(const BufferPlan &state, unsigned device) const {
  auto found = older.find({device, state.name});
  return found == older.end() ? nullptr : &found->second;
}

FailureOr<Buffers> Buffers::compute(const StepTasks &tasks, const StepOrder &order) {
  Buffers buffers(tasks, order);
  for (const Task &task : tasks.list) {
    for (Value operand : buffers.operands.emplace_back(tasks.operandsOf(task)))
      buffers.placeOperand(operand);
    for (Value result : tasks.resultsOf(task))
      buffers.placeResult(task, result);
  }
  buffers.reuseSums();
  SmallVector<WriteOp> writes = tasks.writes();
  for (WriteOp write : writes) // values made by no block are read at the end: placed first
    if (tasks.producer(write.getOperand()) < 0)
      buffers.placeOperand(tasks.canonical(write.getOperand())), buffers.placeWrite(write);
  for (WriteOp write : writes)
    if (tasks.producer(write.getOperand()) >= 0)
      buffers.placeWrite(write);
  buffers.nameAccumulators();
  buffers.markSaved();
  buffers.countSlots();
  if (failed(buffers.keepVersions()))
    return failure();
  return buffers;
}

SmallVector<const BufferPlan *> Buffers::ofDevice(unsigned device) const {
  llvm::SetVector<const BufferPlan *> result;
  for (auto &[value, plan] : index)
    if (tasks.deviceOf(value) == device)
      result.insert(&plans[plan]);
  for (auto &[value, states] : alsoStored)
    if (tasks.deviceOf(value) == device)
      for (const BufferPlan &state : states)
        result.insert(&state);
  for (auto &[value, state] : afterLoop)
    if (tasks.deviceOf(value) == device)
      result.insert(&state);
  for (auto &[key, plan] : older)
    if (key.first == device)
      result.insert(&plan);
  return result.takeVector();
}

ArrayRef<BufferPlan> Buffers::alsoStoredTo(Value value) const {
  auto found = alsoStored.find(value);
  return found == alsoStored.end() ? ArrayRef<BufferPlan>() : ArrayRef<BufferPlan>(found->second);
}

SmallVector<std::pair<Value, BufferPlan>> Buffers::writesAfterLoop(unsigned device) const {
  SmallVector<std::pair<Value, BufferPlan>> result;
  for (auto &write : afterLoop)
    if (tasks.deviceOf(write.first) == device)
      result.push_back(write);
  return result;
}

} // namespace par
