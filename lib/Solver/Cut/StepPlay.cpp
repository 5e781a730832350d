#include "StepPlay.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;

/// Beyond so many microbatches a device only the busiest device's work grows: the rest is its time for each.
static constexpr unsigned playedForEach = 8;

llvm::Expected<StepPlay> StepPlay::make(const StageCutProblem &problem) {
  StepPlay play;
  bool forwardOnly = llvm::all_of(problem.nodes, [](const CutNode &node) { return node.work.backward == 0; });
  unsigned devices = problem.numDevices(), most = playedForEach * devices, played = problem.microbatches;
  bool isTable = OrderTableProblem::isPath(problem.schedule);
  if (played > most && !isTable) // whole rounds of the devices, as interleaved schedules take them
    played = most + (played - most) % devices;
  play.left = problem.microbatches - played;
  // Forwards only, one stage a device: they run in order, however the schedule orders backwards.
  std::string schedule = forwardOnly && devices == problem.stages ? "gpipe" : problem.schedule;
  auto table = OrderTableProblem::make(schedule, problem.stages, devices, played);
  if (!table)
    return table.takeError();
  auto order = table->solve();
  if (!order)
    return order.takeError();
  play.table = std::move(*table);
  play.apart = !forwardOnly && play.table.weightsApart();
  play.blocking = problem.blocking;
  for (DeviceOrder &device : order->devices) {
    if (forwardOnly)
      llvm::erase_if(device.slots, [](const ScheduleSlot &slot) { return slot.kind != SlotKind::Forward; });
    play.orders.push_back(std::move(device.slots));
  }
  return play;
}

size_t StepPlay::slots() const {
  size_t count = 0;
  for (const DeviceSlots &order : orders)
    count += order.size();
  return count;
}

struct StepPlay::State {
  std::vector<size_t> next;
  std::vector<int64_t> free;
  std::vector<int64_t> ends; ///< of each slot kind, stage and microbatch; -1: not yet
};

/// When what ended on one device is on another. A transfer that takes engines holds the sender's; the receiver's cannot
/// run before it is over.
int64_t StepPlay::send(State &state, unsigned from, unsigned to, int64_t ended, int64_t link) const {
  unsigned sender = deviceOf(from), receiver = deviceOf(to);
  if (sender == receiver)
    return ended;
  return blocking ? std::max(ended, state.free[receiver]) + link : ended + link;
}

bool StepPlay::step(State &state, unsigned device, llvm::ArrayRef<StageTimes> times) const {
  const ScheduleSlot &slot = orders[device][state.next[device]];
  unsigned stage = table.stageOf(device, slot.chunk), last = times.size() - 1;
  auto end = [&](SlotKind kind, unsigned of) -> int64_t & {
    return state.ends[(3 * of + static_cast<unsigned>(kind)) * table.microbatches + slot.microbatch];
  };
  const CutWork &work = times[stage].work;
  int64_t ready = state.free[device], duration = work.forward;
  auto need = [&](SlotKind kind, unsigned of, int64_t link) {
    int64_t ended = end(kind, of);
    ready = std::max(ready, ended < 0 ? ended : send(state, of, stage, ended, link));
    return ended >= 0;
  };
  bool met = true;
  if (slot.kind == SlotKind::Forward) {
    met = stage == 0 || need(SlotKind::Forward, stage - 1, times[stage].link);
  } else if (slot.kind == SlotKind::Weight) {
    duration = work.gradient;
    met = need(SlotKind::Backward, stage, 0);
  } else {
    duration = work.backward - (apart ? work.gradient : 0);
    met = need(SlotKind::Forward, stage, 0) &&
          (stage == last || need(SlotKind::Backward, stage + 1, times[stage + 1].link));
  }
  if (!met)
    return false;
  int64_t done = ready + duration;
  end(slot.kind, stage) = state.free[device] = done;
  if (!blocking)
    return true;
  if (slot.kind == SlotKind::Forward && stage < last && deviceOf(stage + 1) != device)
    state.free[device] += times[stage + 1].link;
  if (slot.kind == SlotKind::Backward && stage > 0 && deviceOf(stage - 1) != device)
    state.free[device] += times[stage].link;
  return true;
}

int64_t StepPlay::run(llvm::ArrayRef<StageTimes> times) const {
  size_t devices = orders.size();
  State state{std::vector<size_t>(devices, 0), std::vector<int64_t>(devices, 0),
              std::vector<int64_t>(3 * times.size() * table.microbatches, -1)};
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned device = 0; device < devices; ++device)
      while (state.next[device] < orders[device].size() && step(state, device, times)) {
        ++state.next[device];
        progress = true;
      }
  }
  std::vector<int64_t> busy(devices, 0);
  for (unsigned stage = 0; stage < times.size(); ++stage) {
    state.free[deviceOf(stage)] += times[stage].work.update;
    busy[deviceOf(stage)] += times[stage].work.microbatch();
  }
  return *llvm::max_element(state.free) + left * *llvm::max_element(busy);
}
