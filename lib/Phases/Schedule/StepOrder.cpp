// Orders the tasks of a step: compute by the schedule's table of slots (Solver/OrderTable), communication by predicted
// start times in one global order (Solver/GlobalOrder), which cannot deadlock.
#include "StepOrder.h"

#include "par/Base/TypeSize.h"
#include "par/Dialect/Calls.h"
#include "par/Dialect/FusedTime.h"
#include "par/Solver/Order/GlobalOrder.h"
#include "par/Solver/Order/OrderTable.h"

using namespace mlir;

namespace par {

//===-- Times --------------------------------------------------------------------------------===//

int64_t predictTime(const StepTasks &stepTasks, const Task &stepTask, const CostTable &costs) {
  int64_t bytes = 0;
  if (stepTask.isCommunication())
    for (Operation *op : stepTask.ops)
      bytes += getByteSize(stepTasks.localType(op->getResult(0)));
  if (stepTask.kind == Task::Kind::Transfer) {
    auto ranksOf = [&](unsigned side) { return StageOp(stepTasks.stages[stepTask.stages[side]]).getRanks(); };
    return costs.send(bytes, costs.hardware().endsOf(ranksOf(0), ranksOf(1))).ns;
  }
  if (stepTask.kind == Task::Kind::Reduce)
    return costs.collective(format::CollKind::AllReduce, bytes, stepTasks.devicesOf(stepTask).size()).ns;
  int64_t time = costs.launch();
  for (Operation *op : stepTask.ops)
    time += timeOfBlock(stepTasks.fragmentOf(cast<RunOp>(op)).getBlock(), costs);
  return time;
}

//===-- The order on one device --------------------------------------------------------------===//

namespace {

/// Tasks of all instances: communication first, so that at equal times it goes before compute.
class TaskList {
public:
  TaskList(const StepTasks &stepTasks, const CostTable &costs) : stepTasks(stepTasks) {
    for (const Task &stepTask : stepTasks.list)
      times.push_back(predictTime(stepTasks, stepTask, costs));
    // Neighbours first: a transfer to a later stage may wait for its receiver's buffer, and others for it.
    for (size_t far = 0; far < stepTasks.stages.size(); ++far)
      for (auto [index, stepTask] : llvm::enumerate(stepTasks.list))
        if (stepTask.isCommunication() && stepTask.distance() == far)
          for (int64_t microbatch = 0; microbatch < stepTask.instances(); ++microbatch)
            append(index, microbatch);
  }

  void append(unsigned stepTask, int64_t microbatch) {
    const Task &source = stepTasks.list[stepTask];
    OrderTask task;
    task.name = source.name + "/" + std::to_string(microbatch);
    task.duration = times[stepTask];
    SmallVector<unsigned> devices = stepTasks.devicesOf(source);
    task.ranks.assign(devices.begin(), devices.end());
    if (!source.isCommunication())
      task.resource = std::to_string(devices.front());
    indices[{stepTask, microbatch}] = problem.tasks.size();
    problem.tasks.push_back(std::move(task));
    instances.push_back({stepTask, microbatch});
  }

  /// Links every instance to the producers of its operands: in its microbatch, or in the last microbatch of its call.
  void link() {
    SmallVector<SmallVector<Source>> sources; // by activity: the same for thousands of instances
    for (const Task &stepTask : stepTasks.list)
      sources.push_back(sourcesOf(stepTask));
    for (auto [task, instance] : llvm::zip(problem.tasks, instances))
      for (Source source : sources[instance.task]) {
        int64_t call = instance.microbatch / source.userCount;
        task.after.push_back(
            indices[{source.stepTask, source.inStep ? instance.microbatch : (call + 1) * source.count - 1}]);
      }
    for (const Task &stepTask : stepTasks.list)
      if (stepTask.calls > 1)
        keepUntilUsed(stepTask);
    if (getCalls(stepTasks.step) > 1)
      for (WriteOp write : stepTasks.writes())
        waitForVersions(write);
  }

  /// Predicted ns of an activity.
  int64_t timeOf(unsigned stepTask) const { return times[stepTask]; }

  GlobalOrderProblem problem;
  std::vector<TaskInstance> instances;

private:
  /// A producer of a task's operands: its instance of the same microbatch (`inStep`), or of the call's last microbatch.
  /// `count` and `userCount` are their microbatches in a call.
  struct Source {
    unsigned stepTask;
    bool inStep;
    int64_t count, userCount;
  };
  SmallVector<Source> sourcesOf(const Task &stepTask) const {
    SmallVector<Source> sources;
    for (Value operand : stepTasks.operandsOf(stepTask)) {
      int64_t producer = stepTasks.producer(operand);
      if (producer < 0 || &stepTasks.list[producer] == &stepTask)
        continue;
      const Task &source = stepTasks.list[producer];
      bool inStep = source.loop == stepTask.loop || isStacked(operand, stepTask);
      auto alike = [&](const Source &other) { return other.stepTask == producer && other.inStep == inStep; };
      if (llvm::none_of(sources, alike))
        sources.push_back({static_cast<unsigned>(producer), inStep, source.count(), stepTask.count()});
    }
    return sources;
  }

  /// Values outside loops and sums have one place for all calls. A call writes them only after the last call's users.
  void keepUntilUsed(const Task &user) {
    unsigned index = &user - stepTasks.list.data();
    for (Value operand : stepTasks.operandsOf(user)) {
      int64_t producer = stepTasks.producer(operand);
      if (producer < 0 || producer == index)
        continue;
      const Task &source = stepTasks.list[producer];
      bool sum = isa_and_nonnull<LoopOp>(operand.getDefiningOp());
      if (source.loop && !sum && !llvm::is_contained(source.tail, operand.getDefiningOp()))
        continue;
      for (int64_t call = 1; call < user.calls; ++call)
        problem.tasks[indices[{producer, call * source.count()}]].after.push_back(
            indices[{index, call * user.count() - 1}]);
    }
  }

  /// A microbatch waits for the update that makes its version of a parameter, even if another stage sends it.
  void waitForVersions(WriteOp write) {
    int64_t producer = stepTasks.producer(write.getOperand());
    unsigned device = stepTasks.deviceOf(stepTasks.canonical(write.getOperand()));
    for (Value read : stepTasks.staleReadsOf(stepTasks.variableOf(write), device))
      for (auto [index, user] : llvm::enumerate(stepTasks.list)) {
        if (producer < 0 || user.staleness == 0 || !llvm::is_contained(stepTasks.operandsOf(user), read))
          continue;
        int64_t each = stepTasks.list[producer].count();
        for (int64_t i = (user.staleness + 1) * user.count(); i < user.instances(); ++i)
          problem.tasks[indices[{index, i}]].after.push_back(
              indices[{producer, (i / user.count() - user.staleness) * each - 1}]);
      }
  }

  /// A value of an earlier loop, sliced by this one.
  bool isStacked(Value operand, const Task &stepTask) const {
    auto result = dyn_cast<OpResult>(operand);
    return stepTask.loop && result && isa<LoopOp>(result.getOwner()->getParentOp());
  }

  const StepTasks &stepTasks;
  SmallVector<int64_t> times;
  std::map<std::pair<unsigned, int64_t>, unsigned> indices;
};

/// The order in which a loop runs on each device: slots, and the stage of each chunk.
struct LoopOrder {
  OrderTableProblem problem;
  std::vector<DeviceOrder> devices;
};

} // namespace

/// Gives the slots of a loop their predicted times, and a transfer that of the longest one.
static void predictSlots(const StepTasks &stepTasks, LoopOp loop, const TaskList &tasks, OrderTableProblem &problem) {
  std::vector<int64_t> *times[] = {&problem.forward, &problem.backward, &problem.weight};
  for (std::vector<int64_t> *each : times)
    each->assign(problem.stages, 0);
  for (auto [index, stepTask] : llvm::enumerate(stepTasks.list)) {
    if (stepTask.loop != loop)
      continue;
    if (stepTask.kind == Task::Kind::Transfer)
      problem.transfer = std::max(problem.transfer, tasks.timeOf(index));
    else if (stepTask.kind == Task::Kind::Compute)
      (*times[static_cast<unsigned>(stepTask.slot)])[stepTask.stages.front()] += tasks.timeOf(index);
  }
}

/// The schedule's order of a loop; without a backward, the order in which the schedule runs forwards.
static FailureOr<LoopOrder> orderLoop(const StepTasks &stepTasks, LoopOp loop, StringRef schedule,
                                      const TaskList &tasks) {
  unsigned stages = stepTasks.stages.size();
  bool backward = llvm::any_of(stepTasks.list, [&](const Task &stepTask) {
    return stepTask.loop == loop && stepTask.slot != SlotKind::Forward;
  });
  // Forwards only, one stage a device: they run in order, however the schedule orders backwards.
  auto problem = OrderTableProblem::make(backward || stages > stepTasks.numDevices() ? schedule : "gpipe", stages,
                                         stepTasks.numDevices(), loop.getCount() * getCalls(stepTasks.step));
  if (!problem)
    return loop.emitError() << llvm::toString(problem.takeError());
  for (unsigned stage = 0; stage < stages; ++stage)
    if (problem->deviceOf(stage) != stepTasks.deviceOf(stage))
      return loop.emitError() << "schedule \"" << schedule << "\" puts stage " << stage << " on device "
                              << problem->deviceOf(stage) << "; it lies on the ranks of device "
                              << stepTasks.deviceOf(stage);
  predictSlots(stepTasks, loop, tasks, *problem);
  llvm::Expected<OrderTable> table = problem->solve();
  if (!table)
    return loop.emitError() << llvm::toString(table.takeError());
  if (!backward)
    for (DeviceOrder &device : table->devices)
      llvm::erase_if(device.slots, [](const ScheduleSlot &slot) { return slot.kind != SlotKind::Forward; });
  return LoopOrder{std::move(*problem), std::move(table->devices)};
}

/// Lists a loop's compute on one device. A backward whose weight gradient has no slot of its own takes it along. The
/// two callbacks append the tasks of a call before and after the loop.
static void listLoop(const StepTasks &stepTasks, LoopOp loop, const LoopOrder &order, unsigned device, TaskList &tasks,
                     llvm::function_ref<void(int64_t call)> before, llvm::function_ref<void(int64_t call)> after) {
  ArrayRef<ScheduleSlot> slots = order.devices[device].slots;
  llvm::DenseSet<std::pair<unsigned, unsigned>> apart;
  for (const ScheduleSlot &slot : slots)
    if (slot.kind == SlotKind::Weight)
      apart.insert({slot.chunk, slot.microbatch});
  std::map<int64_t, size_t> left; // slots of a call that are still to come
  for (const ScheduleSlot &slot : slots)
    ++left[slot.microbatch / loop.getCount()];
  llvm::DenseSet<int64_t> begun;
  for (const ScheduleSlot &slot : slots) {
    int64_t call = slot.microbatch / loop.getCount();
    if (begun.insert(call).second)
      before(call);
    bool whole = slot.kind == SlotKind::Backward && !apart.contains({slot.chunk, slot.microbatch});
    for (auto [index, member] : llvm::enumerate(stepTasks.list))
      if (member.loop == loop && !member.isCommunication() &&
          member.stages.front() == order.problem.stageOf(device, slot.chunk) &&
          (member.slot == slot.kind || (whole && member.slot == SlotKind::Weight)))
        tasks.append(index, slot.microbatch);
    if (--left[call] == 0)
      after(call);
  }
}

/// Lists the compute of all devices with several calls between flushes. Each device runs the slots of all calls. A
/// call's tasks outside its last loop, the one with the backward, run next to its own slots.
static LogicalResult listCalls(const StepTasks &stepTasks, StringRef schedule, TaskList &tasks) {
  LoopOp loop;
  unsigned first = 0;
  for (auto [index, stepTask] : llvm::enumerate(stepTasks.list))
    if (stepTask.loop && stepTask.loop != loop)
      loop = stepTask.loop, first = index;
  if (!loop)
    return StepOp(stepTasks.step).emitError()
           << "has several calls between flushes and no loop: not supported yet by Schedule";
  auto order = orderLoop(stepTasks, loop, schedule, tasks);
  if (failed(order))
    return failure();
  for (unsigned device = 0; device < stepTasks.numDevices(); ++device) {
    auto list = [&](int64_t call, bool before) {
      for (auto [index, stepTask] : llvm::enumerate(stepTasks.list))
        if (stepTask.loop != loop && !stepTask.isCommunication() && stepTasks.isOn(stepTask, device) &&
            (index < first) == before)
          for (int64_t i = 0; i < stepTask.count(); ++i)
            tasks.append(index, call * stepTask.count() + i);
    };
    listLoop(
        stepTasks, loop, *order, device, tasks, [&](int64_t call) { list(call, true); },
        [&](int64_t call) { list(call, false); });
  }
  return success();
}

/// Lists the compute of all devices: tasks outside loops in the step's order, loops by their slots.
static LogicalResult listCompute(const StepTasks &stepTasks, StringRef schedule, TaskList &tasks) {
  if (getCalls(stepTasks.step) > 1)
    return listCalls(stepTasks, schedule, tasks);
  llvm::DenseSet<Operation *> done;
  for (auto [index, stepTask] : llvm::enumerate(stepTasks.list)) {
    LoopOp loop = stepTask.loop;
    if (!loop && !stepTask.isCommunication())
      tasks.append(index, 0);
    if (!loop || !done.insert(loop).second)
      continue;
    auto order = orderLoop(stepTasks, loop, schedule, tasks);
    if (failed(order))
      return failure();
    for (unsigned device = 0; device < stepTasks.numDevices(); ++device)
      listLoop(stepTasks, loop, *order, device, tasks, [](int64_t) {}, [](int64_t) {});
  }
  return success();
}

FailureOr<StepOrder> StepOrder::compute(const StepTasks &stepTasks, StringRef schedule, const CostTable &costs) {
  TaskList tasks(stepTasks, costs);
  if (failed(listCompute(stepTasks, schedule, tasks)))
    return failure();
  tasks.link();
  llvm::Expected<GlobalOrder> order = tasks.problem.solve();
  if (!order)
    return StepOp(stepTasks.step).emitError() << llvm::toString(order.takeError());
  StepOrder result;
  for (unsigned task : order->order) {
    TaskInstance instance = tasks.instances[task];
    instance.start = order->start[task];
    instance.end = instance.start + tasks.problem.tasks[task].duration;
    result.instances.push_back(instance);
  }
  return result;
}

} // namespace par
