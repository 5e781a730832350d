// Takes a step apart into tasks, one for each run, transfer, fetch and write of a loop or outside it, with their
// operands and results. Reductions join the task that produces the sum.
#include "StepTasks.h"

#include "par/Dialect/Calls.h"

using namespace mlir;

namespace par {

//===-- Values -------------------------------------------------------------------------------===//

Value StepTasks::canonical(Value value) const {
  for (auto found = same.find(value); found != same.end(); found = same.find(value))
    value = found->second;
  return value;
}

int64_t StepTasks::producer(Value value) const {
  auto found = producers.find(canonical(value));
  return found == producers.end() ? -1 : static_cast<int64_t>(found->second);
}

unsigned StepTasks::stageOf(Value value) const {
  auto name = cast<DistType>(value.getType()).getStage();
  auto found = llvm::find_if(stages, [&](StageOp stage) { return StageOp(stage).getSymNameAttr() == name.getAttr(); });
  return found - stages.begin();
}

RankedTensorType StepTasks::localType(Value value) const {
  auto type = cast<DistType>(value.getType());
  return type.getSharding().getLocalType(type.getTensor(), StageOp(stages[stageOf(value)]).getMesh());
}

bool StepTasks::isMicrobatchIndex(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getArgNumber() == 0 && isa<LoopOp>(argument.getOwner()->getParentOp());
}

int64_t StepTasks::stalenessOf(Value value) {
  auto read = value.getDefiningOp<ReadOp>();
  return read ? read.getBehind() : 0;
}

/// Microbatches compute with one version of the parameters, which the schedule keeps for them.
LogicalResult StepTasks::findStaleness() {
  for (Task &task : list) {
    for (Value operand : operandsOf(task)) {
      int64_t staleness = stalenessOf(operand);
      if (staleness == 0)
        continue;
      if (!task.loop || task.isCommunication())
        return operand.getDefiningOp()->emitError()
               << "has staleness " << staleness << ", but no microbatch uses it: not supported yet by Schedule";
      if (task.staleness != 0 && task.staleness != staleness)
        return operand.getDefiningOp()->emitError()
               << "has staleness " << staleness << ", and another read of the same block " << task.staleness
               << ": not supported yet by Schedule";
      task.staleness = staleness;
    }
  }
  return success();
}

int64_t StepTasks::countNumbered(unsigned device) const {
  int64_t count = 0;
  for (const Task &task : list)
    if (task.kind == Task::Kind::Compute && isOn(task, device))
      for (Operation *op : task.ops)
        if (llvm::any_of(op->getOperands(), isMicrobatchIndex))
          count = std::max(count, task.count());
  return count;
}

/// The loop's yield operand for one of its results.
static Value yielded(OpResult result) {
  auto loop = cast<LoopOp>(result.getOwner());
  return loop.getBody().front().getTerminator()->getOperand(result.getResultNumber());
}

SmallVector<Value> StepTasks::operandsOf(const Task &task) const {
  llvm::SetVector<Value> outside;
  llvm::DenseSet<Value> inside;
  auto need = [&](Value value) {
    value = canonical(value);
    if (!inside.contains(value) && !isMicrobatchIndex(value))
      outside.insert(value);
  };
  for (Operation *op : task.ops) {
    llvm::for_each(op->getOperands(), need);
    inside.insert(op->result_begin(), op->result_end());
  }
  for (OpResult sum : task.sums) {
    need(yielded(sum));
    inside.insert(sum);
  }
  for (auto &[value, name] : task.fetches)
    need(value);
  for (Operation *op : task.tail) {
    llvm::for_each(op->getOperands(), need);
    inside.insert(op->result_begin(), op->result_end());
  }
  return outside.takeVector();
}

SmallVector<Value> StepTasks::resultsOf(const Task &task) const {
  SmallVector<Operation *> own(task.ops);
  llvm::append_range(own, task.tail);
  SmallVector<Value> made;
  auto needed = [&](Value value) {
    return llvm::any_of(value.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isa<ReturnOp>(user)) // a fetch here, or one that stands elsewhere
        return llvm::none_of(task.fetches, [&](auto &fetch) { return fetch.first == value; });
      if (auto yield = dyn_cast<YieldOp>(user)) {
        OpResult result = yield->getParentOp()->getResult(use.getOperandNumber());
        bool sliced = llvm::any_of(result.getUsers(), [](Operation *op) { return isa<LoopOp, WriteOp>(op); });
        bool stacked = cast<YieldKindAttr>(yield.getKinds()[use.getOperandNumber()]).getValue() == YieldKind::stack;
        return stacked ? sliced : !result.use_empty() && !llvm::is_contained(task.sums, result);
      }
      return !llvm::is_contained(own, user);
    });
  };
  for (Operation *op : own)
    for (Value result : op->getResults())
      if (needed(result))
        made.push_back(result);
  for (OpResult sum : task.sums)
    made.push_back(sum);
  return made;
}

bool StepTasks::isReducedOnly(const Task &task, OpResult sum) const {
  return llvm::all_of(sum.getUsers(), [&](Operation *user) { return llvm::is_contained(task.tail, user); });
}

//===-- Taking a step apart ------------------------------------------------------------------===//

Task &StepTasks::append(Task::Kind kind, StringRef name, LoopOp loop, ArrayRef<unsigned> on) {
  Task task;
  task.kind = kind;
  task.loop = loop;
  task.calls = getCalls(step);
  task.stages.assign(on.begin(), on.end());
  unsigned again = 0; // a name is taken if it is taken on one of the devices
  for (unsigned device : devicesOf(task))
    again = std::max(again, names[{device, name.str()}]);
  for (unsigned device : devicesOf(task))
    names[{device, name.str()}] = again + 1;
  task.name = again ? (name + "_" + Twine(again + 1)).str() : name.str();
  list.push_back(std::move(task));
  return list.back();
}

/// If a device has several stages, a task is named after its stage: "forward.s2".
std::string StepTasks::nameOn(StringRef name, unsigned stage) const {
  bool alone = devices[deviceOf(stage)].size() == 1;
  return alone ? name.str() : (name + "." + StageOp(stages[stage]).getSymName()).str();
}

bool StepTasks::joinBeside(RunOp run) {
  Value operand = run.getOperands().front(), result = run.getResult(0);
  if (operand.getDefiningOp<ReadOp>()) {
    auto reader = result.hasOneUse() ? dyn_cast<RunOp>(*result.user_begin()) : RunOp();
    if (reader && reader->getBlock() == run->getBlock()) {
      ahead[reader].push_back(run);
      return true;
    }
    unsigned stage = stageOf(result);
    auto prepares = [&](Task &task) { return task.prepares && task.stages.front() == stage; };
    auto found = llvm::find_if(list, prepares);
    Task &task = found != list.end() ? *found : append(Task::Kind::Compute, nameOn("prepare", stage), LoopOp(), stage);
    task.prepares = true;
    task.ops.push_back(run);
    producers[result] = &task - list.data();
    return true;
  }
  int64_t index = producer(operand);
  if (index < 0 || list[index].kind != Task::Kind::Compute || list[index].loop)
    return false;
  list[index].ops.push_back(run);
  producers[result] = index;
  return true;
}

/// A reduction of a loop's sum joins the loop's last task on its stage. A reduction inside a loop joins the task that
/// makes its operand: there it overlaps with compute. A layout change beside the loops joins its producer, or the one
/// run that reads it; one task prepares all variables that the loops need in another layout.
bool StepTasks::joinReduction(RunOp run, LoopOp loop) {
  if (fragmentOf(run).getKind() != FragmentKind::reduce || run.getOperands().empty())
    return false;
  auto from = run.getOperands().front().getDefiningOp<LoopOp>();
  if (!loop && !from)
    return joinBeside(run);
  unsigned stage = stageOf(run.getOperands().front());
  Task *target = nullptr;
  for (Task &task : list)
    if (task.kind == Task::Kind::Compute && task.loop == (loop ? loop : from) && task.stages.front() == stage &&
        (!target || task.slot >= target->slot))
      target = &task;
  if (!target)
    return false;
  int64_t index = target - list.data();
  for (Value operand : run.getOperands()) {
    bool here = loop ? producer(operand) == index : operand.getDefiningOp() == from;
    if (!here && !operand.getDefiningOp<ReadOp>())
      return false;
  }
  (loop ? target->ops : target->tail).push_back(run);
  for (Value result : run.getResults())
    producers[result] = index;
  return true;
}

/// With several calls a flush, a run that reads only forward sums joins the last forward microbatch: the next call
/// overwrites the sums.
bool StepTasks::joinForward(RunOp run, LoopOp loop) {
  if (loop || getCalls(step) == 1)
    return false;
  Task *target = nullptr;
  for (Value operand : run.getOperands()) {
    if (operand.getDefiningOp<ReadOp>())
      continue;
    int64_t index = producer(operand);
    if (index < 0 || (target && target != &list[index]))
      return false;
    target = &list[index];
    bool inTail = isa<LoopOp>(operand.getDefiningOp()) || llvm::is_contained(target->tail, operand.getDefiningOp());
    if (!inTail || !target->loop || target->isCommunication() || target->slot != SlotKind::Forward)
      return false;
  }
  if (!target)
    return false;
  target->tail.push_back(run);
  for (Value result : run.getResults())
    producers[result] = target - list.data();
  return true;
}

static SlotKind slotOf(FragmentKind kind) {
  if (kind == FragmentKind::weight)
    return SlotKind::Weight;
  return kind == FragmentKind::backward ? SlotKind::Backward : SlotKind::Forward;
}

void StepTasks::addRun(RunOp run, LoopOp loop) {
  if (joinForward(run, loop) || joinReduction(run, loop))
    return;
  FragmentOp fragment = fragmentOf(run);
  StringRef name = fragment.getSymName();
  name.consume_front((step.getSymName() + ".").str());
  name.consume_front((fragment.getStage() + ".").str());
  auto at = llvm::find_if(stages, [&](StageOp stage) { return stage.getSymName() == fragment.getStage(); });
  unsigned stage = at - stages.begin();
  Task &task = append(Task::Kind::Compute, nameOn(name, stage), loop, stage);
  // A layout change runs in the slots of the task that produces or receives the value.
  int64_t source = fragment.getKind() == FragmentKind::reduce ? producer(run.getOperands().front()) : -1;
  task.slot = source >= 0 ? list[source].slot : slotOf(fragment.getKind());
  task.ops = ahead.lookup(run);
  task.ops.push_back(run);
  for (Operation *op : task.ops)
    for (Value result : op->getResults())
      producers[result] = list.size() - 1;
}

/// Transfers of one origin between the same stages are one message.
void StepTasks::addTransfer(TransferOp transfer, LoopOp loop) {
  if (isThere(transfer))
    return;
  unsigned from = stageOf(transfer.getOperand()), to = stageOf(transfer.getResult());
  int64_t origin = producer(transfer.getOperand());
  auto joins = [&](Task &task) {
    return task.kind == Task::Kind::Transfer && task.loop == loop && task.stages[0] == from && task.stages[1] == to &&
           producer(cast<TransferOp>(task.ops.front()).getOperand()) == origin;
  };
  auto found = llvm::find_if(list, joins);
  unsigned index = found - list.begin();
  if (found == list.end()) {
    std::string name = (StageOp(stages[from]).getSymName() + ".to." + StageOp(stages[to]).getSymName()).str();
    append(Task::Kind::Transfer, name, loop, {from, to});
    list[index].slot = origin >= 0 ? list[origin].slot : SlotKind::Forward;
  }
  list[index].ops.push_back(transfer);
  producers[transfer.getResult()] = index;
}

/// All slices of an input are one value. A slice of a stacked result is the value that was stacked.
LogicalResult StepTasks::addSlices(LoopOp loop) {
  Block &body = loop.getBody().front();
  for (auto [operand, slice] : llvm::zip(loop.getSlices(), body.getArguments().drop_front())) {
    if (auto stacked = dyn_cast<OpResult>(operand); stacked && isa<LoopOp>(stacked.getOwner()))
      same[slice] = canonical(yielded(stacked));
    else if (auto read = operand.getDefiningOp<ReadOp>();
             !isa<BlockArgument>(operand) && !(read && microbatchesOf(variableOf(read)) > 0))
      return loop.emitError()
             << "slices a value that is neither an input nor carried nor stacked by a loop: not supported "
                "yet by Schedule";
    else if (Value &first = sliceOf[canonical(operand)])
      same[slice] = first;
    else
      first = slice;
  }
  return success();
}

/// Hands a value out in the block that makes it, or in a block of its own.
void StepTasks::addFetch(Value value, StringAttr name, LoopOp loop, bool backward) {
  int64_t index = producer(value);
  bool here = index >= 0 && list[index].kind == Task::Kind::Compute && list[index].loop == loop;
  if (!here) {
    Task &task = append(Task::Kind::Compute, nameOn("result", stageOf(value)), loop, stageOf(value));
    task.slot = backward ? SlotKind::Backward : SlotKind::Forward;
    index = list.size() - 1;
  }
  list[index].fetches.push_back({value, name});
}

/// Names the user of a whole stacked result. The gradient of a parameter with a row for each sample is such a result.
static InFlightDiagnostic refuseWhole(LoopOp loop, unsigned result, Operation *user) {
  std::optional<ArrayAttr> labels = loop.getLabels();
  StringRef name = labels && result < labels->size() ? cast<StringAttr>((*labels)[result]).getValue() : "";
  if (name.empty())
    return user->emitError() << "uses a stacked result whole: not supported yet by Schedule";
  InFlightDiagnostic error =
      user->emitError() << "the gradient of \"" << name
                        << "\" comes microbatch by microbatch, since it has a row for each sample of the batch, and "
                           "is used whole: not supported yet by Schedule";
  error.attachNote() << "give \"" << name << "\" the shape of one sample, which is broadcast, or do not train it: "
                     << "train.freeze: [" << name << "]";
  return error;
}

/// The task that makes a summand adds it, and hands out a stacked result that the step returns.
LogicalResult StepTasks::addYield(LoopOp loop, YieldOp yield, bool backward) {
  auto step = loop->getParentOfType<StepOp>();
  for (auto [kind, value, result] : llvm::zip(yield.getKinds(), yield.getOperands(), loop.getResults())) {
    if (cast<YieldKindAttr>(kind).getValue() == YieldKind::stack) {
      for (OpOperand &use : result.getUses()) {
        if (isa<LoopOp>(use.getOwner()))
          continue;
        if (auto write = dyn_cast<WriteOp>(use.getOwner()); write && microbatchesOf(variableOf(write)) > 0) {
          same[result] = canonical(value);
          continue;
        }
        if (!isa<ReturnOp>(use.getOwner()) || !step.getOutputs())
          return refuseWhole(loop, result.getResultNumber(), use.getOwner());
        addFetch(value, cast<StringAttr>((*step.getOutputs())[use.getOperandNumber()]), loop, backward);
      }
      continue;
    }
    if (result.use_empty())
      continue;
    int64_t index = producer(value);
    if (index < 0 || list[index].kind != Task::Kind::Compute || list[index].loop != loop) {
      Task &task = append(Task::Kind::Compute, nameOn("sum", stageOf(value)), loop, stageOf(value));
      task.slot = backward ? SlotKind::Backward : SlotKind::Forward;
      index = list.size() - 1;
    }
    list[index].sums.push_back(result);
    producers[result] = index;
  }
  return success();
}

LogicalResult StepTasks::addLoop(LoopOp loop) {
  if (failed(addSlices(loop)))
    return failure();
  for (Operation &op : loop.getBody().front().without_terminator())
    if (failed(add(&op, loop)))
      return failure();
  bool backward =
      llvm::any_of(list, [&](const Task &task) { return task.loop == loop && task.slot != SlotKind::Forward; });
  return addYield(loop, cast<YieldOp>(loop.getBody().front().getTerminator()), backward);
}

LogicalResult StepTasks::addReturn(Operation *op) {
  for (auto [index, value] : llvm::enumerate(op->getOperands())) {
    auto loop = value.getDefiningOp<LoopOp>();
    auto kind = [&](unsigned result) {
      auto yield = cast<YieldOp>(loop.getBody().front().getTerminator());
      return cast<YieldKindAttr>(yield.getKinds()[result]).getValue();
    };
    if (loop && kind(cast<OpResult>(value).getResultNumber()) == YieldKind::stack)
      continue;
    if (!step.getOutputs() || step.getOutputs()->size() <= index)
      return step.emitError() << "has no name for result " << index;
    addFetch(value, cast<StringAttr>((*step.getOutputs())[index]), LoopOp(), false);
  }
  return success();
}

LogicalResult StepTasks::add(Operation *op, LoopOp loop) {
  if (auto read = dyn_cast<ReadOp>(op)) {
    return joinRead(read);
  } else if (auto run = dyn_cast<RunOp>(op)) {
    addRun(run, loop);
  } else if (auto transfer = dyn_cast<TransferOp>(op)) {
    addTransfer(transfer, loop);
  } else if (auto inner = dyn_cast<LoopOp>(op)) {
    return loop ? op->emitError() << "stands in a loop: Schedule knows one level" : addLoop(inner);
  } else if (isa<StageAllReduceOp>(op)) {
    llvm::SetVector<unsigned> on;
    for (Value operand : op->getOperands())
      on.insert(stageOf(operand));
    append(Task::Kind::Reduce, "stage_all_reduce", loop, on.getArrayRef()).ops.push_back(op);
    for (Value result : op->getResults())
      producers[result] = list.size() - 1;
  } else if (isa<ReturnOp>(op)) {
    return addReturn(op);
  } else if (!isa<WriteOp>(op)) {
    return op->emitError() << "may not stand in a step before Schedule";
  }
  return success();
}

FailureOr<StepTasks> StepTasks::compute(StepOp step, ModuleOp module, const SharedVariables &variables) {
  StepTasks result;
  result.variables = &variables;
  result.step = step;
  llvm::append_range(result.stages, module.getOps<StageOp>());
  for (FragmentOp fragment : module.getOps<FragmentOp>())
    result.fragments[fragment.getSymNameAttr()] = fragment;
  result.devices = getStagesByRanks(module);
  for (StageOp stage : result.stages)
    result.deviceOfStage.push_back(
        llvm::find_if(result.devices, [&](ArrayRef<StageOp> on) { return llvm::is_contained(on, stage); }) -
        result.devices.begin());
  result.prefix = (step.getSymName() + ".").str();
  // Names of variables are not used for other buffers or blocks.
  for (auto variable : step->getParentOfType<ModuleOp>().getOps<VariableOp>())
    while (variable.getSymName().starts_with(result.prefix))
      result.prefix.back() = '_', result.prefix += '.';
  if (failed(result.joinInputs()))
    return failure();
  for (Operation &op : step.getBlock())
    if (failed(result.add(&op, LoopOp())))
      return failure();
  if (failed(result.findStaleness()))
    return failure();
  return result;
}

} // namespace par
