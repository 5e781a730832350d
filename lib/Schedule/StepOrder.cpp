#include "StepOrder.h"

#include "par/Interfaces/Cost.h"
#include "par/Solver/GlobalOrder.h"
#include "par/Solver/OrderTable.h"

using namespace mlir;

namespace par {

//===-- Times
//-------------------------------------------------------------------------------------------------===//

/// Bytes are moved by what does not fuse; the rest computes on the way.
static int64_t predictFragment(FragmentOp fragment, const Hardware &hardware) {
  int64_t time = 0;
  for (Operation &op : fragment.getBlock().without_terminator()) {
    OpCost cost = getCost(&op);
    time += cost.fusable ? cost.flops * 1000 / hardware.f32 : hardware.localTime(cost.flops, cost.bytes);
  }
  return time;
}

int64_t predictTime(const Activities &activities, const Activity &activity, const Hardware &hardware) {
  int64_t bytes = 0;
  if (activity.isCommunication())
    for (Operation *op : activity.ops)
      bytes += getByteSize(activities.localType(op->getResult(0)));
  if (activity.kind == Activity::Kind::Transfer)
    return hardware.transferTime(bytes);
  if (activity.kind == Activity::Kind::Reduce)
    return hardware.collectiveTime(format::CollKind::AllReduce, bytes, activity.stages.size());
  int64_t time = hardware.launch;
  for (Operation *op : activity.ops)
    time += predictFragment(
        SymbolTable::lookupNearestSymbolFrom<FragmentOp>(op, cast<RunOp>(op).getFragmentAttr()), hardware);
  return time;
}

//===-- The order on one stage
//--------------------------------------------------------------------------------===//

namespace {

/// Tasks of all instances: communication first, so that at equal times it goes before compute.
class TaskList {
public:
  TaskList(const Activities &activities, const Hardware &hardware) : activities(activities) {
    for (const Activity &activity : activities.list)
      times.push_back(predictTime(activities, activity, hardware));
    for (auto [index, activity] : llvm::enumerate(activities.list))
      if (activity.isCommunication())
        for (int64_t microbatch = 0; microbatch < activity.count(); ++microbatch)
          append(index, microbatch);
  }

  void append(unsigned activity, int64_t microbatch) {
    const Activity &source = activities.list[activity];
    OrderTask task;
    task.name = source.name + "/" + std::to_string(microbatch);
    task.duration = times[activity];
    task.ranks.assign(source.stages.begin(), source.stages.end());
    if (!source.isCommunication())
      task.resource = std::to_string(source.stages.front());
    indices[{activity, microbatch}] = problem.tasks.size();
    problem.tasks.push_back(std::move(task));
    instances.push_back({activity, microbatch});
  }

  /// Every instance waits for who makes what it takes: in its microbatch, or in the last one.
  void link() {
    for (auto [task, instance] : llvm::zip(problem.tasks, instances)) {
      const Activity &activity = activities.list[instance.activity];
      for (Value operand : activities.operandsOf(activity)) {
        int64_t producer = activities.producer(operand);
        if (producer < 0 || producer == static_cast<int64_t>(instance.activity))
          continue;
        const Activity &source = activities.list[producer];
        bool inStep = source.loop == activity.loop || isStacked(operand, activity);
        task.after.push_back(indices[{producer, inStep ? instance.microbatch : source.count() - 1}]);
      }
    }
  }

  GlobalOrderProblem problem;
  std::vector<Instance> instances;

private:
  /// A value of an earlier loop, sliced by this one.
  bool isStacked(Value operand, const Activity &activity) const {
    auto result = dyn_cast<OpResult>(operand);
    return activity.loop && result && isa<LoopOp>(result.getOwner()->getParentOp());
  }

  const Activities &activities;
  SmallVector<int64_t> times;
  std::map<std::pair<unsigned, int64_t>, unsigned> indices;
};

} // namespace

/// The slots in which a stage runs the activities of a loop: of the schedule's table if there is a backward.
static FailureOr<SmallVector<ScheduleSlot>> slotsOf(const Activities &activities, LoopOp loop, unsigned stage,
                                                    StringRef schedule) {
  SmallVector<ScheduleSlot> slots;
  bool backward = llvm::any_of(
      activities.list, [&](const Activity &activity) { return activity.loop == loop && activity.backward; });
  if (!backward) {
    for (unsigned microbatch = 0; microbatch < loop.getCount(); ++microbatch)
      slots.push_back({SlotKind::Forward, microbatch});
    return slots;
  }
  unsigned stages = activities.stages.size();
  auto problem = OrderTableProblem::make(schedule, stages, stages, loop.getCount());
  if (!problem)
    return loop.emitError() << llvm::toString(problem.takeError());
  if (problem->weightsApart())
    return loop.emitError() << "schedule \"" << schedule
                            << "\" runs weight gradients apart from backward: not supported yet by Schedule";
  llvm::Expected<OrderTable> table = problem->solve();
  if (!table)
    return loop.emitError() << llvm::toString(table.takeError());
  slots.assign(table->devices[stage].slots.begin(), table->devices[stage].slots.end());
  return slots;
}

/// Lists the compute of one stage: what stands outside loops in the step's order, loops by their slots.
static LogicalResult listStage(const Activities &activities, unsigned stage, StringRef schedule,
                               TaskList &tasks) {
  LoopOp done;
  for (auto [index, activity] : llvm::enumerate(activities.list)) {
    LoopOp loop = activity.loop;
    if (loop && loop == done)
      continue;
    if (!loop) {
      if (!activity.isCommunication() && activity.stages.front() == stage)
        tasks.append(index, 0);
      continue;
    }
    done = loop;
    auto slots = slotsOf(activities, loop, stage, schedule);
    if (failed(slots))
      return failure();
    for (const ScheduleSlot &slot : *slots)
      for (auto [other, member] : llvm::enumerate(activities.list))
        if (member.loop == loop && !member.isCommunication() && member.stages.front() == stage &&
            member.backward == (slot.kind == SlotKind::Backward))
          tasks.append(other, slot.microbatch);
  }
  return success();
}

FailureOr<StepOrder> StepOrder::compute(const Activities &activities, StringRef schedule,
                                        const Hardware &hardware) {
  TaskList tasks(activities, hardware);
  for (unsigned stage = 0; stage < activities.stages.size(); ++stage)
    if (failed(listStage(activities, stage, schedule, tasks)))
      return failure();
  tasks.link();
  llvm::Expected<GlobalOrder> order = tasks.problem.solve();
  if (!order)
    return StepOp(activities.step).emitError() << llvm::toString(order.takeError());
  StepOrder result;
  for (unsigned task : order->order) {
    Instance instance = tasks.instances[task];
    instance.start = order->start[task];
    instance.end = instance.start + tasks.problem.tasks[task].duration;
    result.instances.push_back(instance);
  }
  return result;
}

} // namespace par
