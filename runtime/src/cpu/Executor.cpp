#include "par/cpu/Executor.h"

#include <ctime>

namespace par::cpu {

using format::Op;

Executor::Executor(uint32_t mainQueue, size_t queueCount, comm::Endpoint &endpoint, comm::Control &control,
                   LocalSteps &local)
    : mainQueue(mainQueue), clock(CLOCK_MONOTONIC), endpoint(endpoint), control(control), local(local),
      queues(queueCount) {}

void Executor::stampThreadTime(bool only) { clock = only ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC; }

int64_t Executor::now() const {
  std::timespec time{};
  clock_gettime(clock, &time);
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void Executor::run(const core::ExpandedEntry &newEntry, core::EntryHost &newHost) {
  entry = &newEntry;
  host = &newHost;
  times.assign(entry->steps.size(), {});
  signalled.assign(entry->steps.size(), 0);
  for (Queue &queue : queues) {
    queue.issued.clear();
    queue.next = 0;
    queue.posted = false;
  }
  waiting = 0;
  control.entry(entry->name);
  for (uint32_t index = 0; index < entry->steps.size(); ++index) {
    if (index == entry->firstWrite) {
      endpoint.poll(); // a run that is abandoned leaves the state as it is
      ++writes;
    }
    uint32_t queue = entry->steps[index].queue;
    if (queue == mainQueue) {
      runNow(index);
    } else {
      queues[queue].issued.push_back(index);
      ++waiting;
    }
    if (waiting > 0) {
      endpoint.poll();
      advanceOthers();
    }
  }
  endpoint.wait([this] { return othersIdle(); }, [this] { return advanceOthers(); });
}

bool Executor::othersIdle() const { return waiting == 0; }

void Executor::runNow(uint32_t index) {
  const core::Command &step = entry->steps[index];
  control.at(step.id);
  times[index].begin = now();
  if (communicates(step.op)) {
    comm::Operation operation = post(step);
    endpoint.wait([&] { return endpoint.done(operation); }, [this] { return advanceOthers(); });
  } else if (step.op == Op::Wait) {
    if (step.awaited >= 0 && !signalled[step.awaited])
      endpoint.wait([&] { return signalled[step.awaited] != 0; }, [this] { return advanceOthers(); });
  } else if (step.op == Op::Signal) {
    markSignalled(index);
  } else {
    local.execute(*entry, step, *host);
  }
  times[index].end = now();
}

comm::Operation Executor::post(const core::Command &step) {
  return endpoint.post(step.queue, std::span(entry->communications).subspan(step.firstUnit, step.units));
}

bool Executor::advanceOthers() {
  bool moved = false;
  for (Queue &queue : queues)
    while (queue.next < queue.issued.size() && advance(queue, moved))
      ;
  return moved;
}

/// Moves the head of a queue; true if it ended, so that the next one may begin.
bool Executor::advance(Queue &queue, bool &moved) {
  uint32_t index = queue.issued[queue.next];
  const core::Command &step = entry->steps[index];
  if (step.op == Op::Wait) {
    if (step.awaited >= 0 && !signalled[step.awaited])
      return false;
    times[index] = {now(), now()};
  } else if (communicates(step.op)) {
    if (!queue.posted) {
      times[index].begin = now();
      queue.operation = post(step);
      queue.posted = moved = true;
      endpoint.poll();
    }
    if (!endpoint.done(queue.operation))
      return false;
    queue.posted = false;
    times[index].end = now();
  } else {
    times[index].begin = now();
    if (step.op == Op::Signal)
      markSignalled(index);
    else
      local.execute(*entry, step, *host);
    times[index].end = now();
  }
  ++queue.next;
  --waiting;
  return moved = true;
}

} // namespace par::cpu
