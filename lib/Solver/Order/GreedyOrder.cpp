// An event simulation that decides as it runs: a free device starts the slot that its policy chooses, and knows only
// those inputs whose senders have started. It never looks back; Order/Auto.cpp searches over policies.
#include "GreedyOrder.h"
#include <deque>
#include <queue>

using namespace par;

constexpr int64_t never = INT64_MAX;

namespace {

/// The state of a step that is played.
class GreedyPlay {
public:
  GreedyPlay(const OrderTableProblem &problem, const OrderPolicy &policy)
      : problem(problem), policy(policy), shape(problem.shape()), devices(shape.devices), stages(problem.stages),
        arrived(size_t(2) * problem.stages * problem.microbatches, never) {
    for (unsigned stage = 0; stage < problem.stages; ++stage) {
      stages[stage].device = problem.deviceOf(stage);
      for (SlotKind kind : {SlotKind::Forward, SlotKind::Backward, SlotKind::Weight})
        stages[stage].time[static_cast<unsigned>(kind)] = problem.timeOf(kind, stage, true);
    }
    for (unsigned microbatch = 0; microbatch < problem.microbatches; ++microbatch)
      arrival(SlotKind::Forward, 0, microbatch) = 0;
    for (unsigned device = 0; device < shape.devices; ++device)
      for (unsigned chunk = 0; chunk < shape.chunks; ++chunk)
        devices[device].stages.push_back(problem.stageOf(device, chunk));
  }

  GreedyOrder run();

private:
  struct Stage {
    unsigned device = 0;
    unsigned forwards = 0, backwards = 0, weights = 0; ///< that have started
    int64_t time[3] = {};
  };
  struct Device {
    std::vector<unsigned> stages;
    std::deque<unsigned> pending; ///< stages with a weight gradient to compute, oldest first
    int64_t free = 0, first = -1, memory = 0;
    unsigned forwards = 0;
    bool beganBackward = false, lastWasBackward = false;
    DeviceSlots slots;
  };
  /// A slot that could run next, and the time from which it is ready.
  struct Candidate {
    int64_t ready = never;
    unsigned stage = 0, microbatch = 0;
  };

  int64_t &arrival(SlotKind kind, unsigned stage, unsigned microbatch) {
    return arrived[(2 * stage + static_cast<unsigned>(kind)) * problem.microbatches + microbatch];
  }
  void offer(Candidate &best, int64_t now, unsigned device, SlotKind kind, unsigned stage, unsigned microbatch);
  Candidate backwardOf(unsigned device, int64_t now);
  Candidate forwardOf(unsigned device, int64_t now);
  void choose(unsigned device, int64_t now);
  void start(SlotKind kind, unsigned stage, int64_t now);
  void deliver(SlotKind kind, unsigned from, unsigned to, unsigned microbatch, int64_t ended);

  const OrderTableProblem &problem;
  const OrderPolicy &policy;
  const ScheduleShape shape;
  std::vector<Device> devices;
  std::vector<Stage> stages;
  std::vector<int64_t> arrived;               ///< when the input of a forward or backward is there
  using Event = std::pair<int64_t, unsigned>; ///< a device looks again
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
};

} // namespace

/// Keeps the better of two candidates: one that is ready, by the device's preference; else the earlier one.
void GreedyPlay::offer(Candidate &best, int64_t now, unsigned device, SlotKind kind, unsigned stage,
                       unsigned microbatch) {
  Candidate other = {arrival(kind, stage, microbatch), stage, microbatch};
  bool ready = other.ready <= now, bestReady = best.ready <= now;
  bool better = other.ready < best.ready;
  if (ready && bestReady)
    better = policy[device].oldestFirst ? std::pair(other.microbatch, ~stage) < std::pair(best.microbatch, ~best.stage)
                                        : stage > best.stage;
  if (better)
    best = other;
}

GreedyPlay::Candidate GreedyPlay::backwardOf(unsigned device, int64_t now) {
  Candidate best;
  for (unsigned stage : devices[device].stages)
    if (stages[stage].backwards < stages[stage].forwards)
      offer(best, now, device, SlotKind::Backward, stage, stages[stage].backwards);
  return best;
}

/// A forward leaves room for one of each deeper stage of the device, without which its backward never comes.
GreedyPlay::Candidate GreedyPlay::forwardOf(unsigned device, int64_t now) {
  Candidate best;
  const Device &own = devices[device];
  if (!own.beganBackward && own.forwards >= policy[device].warmup)
    return best;
  for (unsigned stage : own.stages) {
    int64_t deeper = shape.chunks - 1 - problem.chunkOf(stage);
    if (stages[stage].forwards < problem.microbatches && own.memory + 1000 * (1 + deeper) <= policy[device].room)
      offer(best, now, device, SlotKind::Forward, stage, stages[stage].forwards);
  }
  return best;
}

void GreedyPlay::deliver(SlotKind kind, unsigned from, unsigned to, unsigned microbatch, int64_t ended) {
  unsigned device = stages[to].device;
  int64_t at = ended + (device == stages[from].device ? 0 : problem.transfer);
  arrival(kind, to, microbatch) = at;
  events.push({at, device});
}

void GreedyPlay::start(SlotKind kind, unsigned stage, int64_t now) {
  Stage &state = stages[stage];
  Device &device = devices[state.device];
  int64_t ended = now + state.time[static_cast<unsigned>(kind)];
  unsigned &count = kind == SlotKind::Forward    ? state.forwards
                    : kind == SlotKind::Backward ? state.backwards
                                                 : state.weights;
  device.slots.push_back({kind, count, problem.chunkOf(stage)});
  if (kind == SlotKind::Forward) {
    device.memory += 1000;
    ++device.forwards;
    if (stage + 1 < problem.stages)
      deliver(kind, stage, stage + 1, count, ended);
    else
      arrival(SlotKind::Backward, stage, count) = ended;
  } else if (kind == SlotKind::Backward) {
    device.memory += problem.kept - 1000;
    device.pending.push_back(stage);
    device.beganBackward = true;
    if (stage > 0)
      deliver(kind, stage, stage - 1, count, ended);
  } else {
    device.memory -= problem.kept;
    device.pending.pop_front();
  }
  ++count;
  device.lastWasBackward = kind == SlotKind::Backward;
  if (device.first < 0)
    device.first = now;
  device.free = ended;
  events.push({ended, state.device});
}

void GreedyPlay::choose(unsigned device, int64_t now) {
  Device &own = devices[device];
  Candidate forward = forwardOf(device, now), backward = backwardOf(device, now);
  bool canForward = forward.ready <= now, canBackward = backward.ready <= now;
  if (canBackward && !(canForward && policy[device].alternates && own.lastWasBackward))
    return start(SlotKind::Backward, backward.stage, now);
  if (canForward)
    return start(SlotKind::Forward, forward.stage, now);
  int64_t next = std::min(forward.ready, backward.ready);
  if (!own.pending.empty()) {
    unsigned stage = own.pending.front();
    int64_t time = stages[stage].time[static_cast<unsigned>(SlotKind::Weight)];
    if (next == never || (next - now) * 10 >= time * policy[device].patience)
      return start(SlotKind::Weight, stage, now);
  }
  if (next != never)
    events.push({next, device});
}

GreedyOrder GreedyPlay::run() {
  for (unsigned device = 0; device < shape.devices; ++device)
    events.push({0, device});
  while (!events.empty()) {
    auto [now, device] = events.top();
    events.pop();
    if (devices[device].free <= now)
      choose(device, now);
  }
  GreedyOrder result;
  result.complete = true;
  for (const Stage &stage : stages)
    result.complete &= stage.weights == problem.microbatches;
  for (Device &device : devices) {
    result.makespan = std::max(result.makespan, device.free);
    result.longest = std::max(result.longest, device.free - device.first);
    result.orders.push_back(std::move(device.slots));
  }
  return result;
}

GreedyOrder par::orderGreedily(const OrderTableProblem &problem, const OrderPolicy &policy) {
  return GreedyPlay(problem, policy).run();
}
