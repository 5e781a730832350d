#include "Graphs.h"

namespace par::cuda {

using core::Command;
using format::Op;

namespace {

bool isInner(const Command &wait, const Segment &segment) {
  return wait.awaited >= static_cast<int64_t>(segment.first);
}

} // namespace

Graphs::Key Graphs::keyOf(const PreparedEntry &entry, const Segment &segment) {
  const core::ExpandedEntry &source = entry.source;
  const Command &first = source.steps[segment.first];
  Key key{source.runs[first.run].block, reinterpret_cast<uint64_t>(first.instruction), segment.last - segment.first};
  for (uint32_t i = segment.first; i < segment.last; ++i) {
    const Command &step = source.steps[i];
    for (size_t o = 0; o < step.instruction->operands.size(); ++o)
      key.push_back(reinterpret_cast<uint64_t>(source.pointers[step.operands + o]));
    if (step.op == Op::Wait)
      key.push_back(isInner(step, segment) ? static_cast<uint64_t>(step.awaited) - segment.first + 1 : 0);
  }
  return key;
}

void Graphs::run(const PreparedEntry &entry, const Segment &segment) {
  const std::vector<Command> &steps = entry.source.steps;
  uint32_t home = segment.queues.front();
  auto each = [&](Op op, auto &&visit) {
    for (uint32_t i = segment.first; i < segment.last; ++i)
      if (steps[i].op == op)
        visit(i);
  };
  walk.join(segment.queues, home);
  each(Op::Wait, [&](uint32_t i) {
    if (steps[i].awaited >= 0 && !isInner(steps[i], segment))
      gpu->check(
          gpu->streamWait(lanes.streams[home], lanes.events[entry.eventOf[static_cast<size_t>(steps[i].awaited)]], 0),
          "cuStreamWaitEvent");
  });
  auto [place, isNew] = cache.try_emplace(keyOf(entry, segment));
  if (isNew)
    place->second = capture(home, [&] {
      walk.fork(home, segment.queues);
      for (uint32_t i = segment.first; i < segment.last; ++i)
        if (steps[i].op != Op::Wait || isInner(steps[i], segment))
          walk.issue(entry, i);
      walk.join(segment.queues, home);
    });
  gpu->check(gpu->graphLaunch(place->second, lanes.streams[home]), "cuGraphLaunch");
  walk.fork(home, segment.queues);
  each(Op::Signal, [&](uint32_t i) {
    gpu->check(gpu->eventRecord(lanes.events[entry.eventOf[i]], lanes.streams[home]), "cuEventRecord");
  });
}

Owned<GraphExec> Graphs::capture(uint32_t queue, const std::function<void()> &issue) {
  Graph graph = nullptr;
  gpu->check(gpu->captureBegin(lanes.streams[queue], captureThreadLocal), "cuStreamBeginCapture");
  try {
    issue();
  } catch (...) {
    gpu->captureEnd(lanes.streams[queue], &graph);
    throw;
  }
  gpu->check(gpu->captureEnd(lanes.streams[queue], &graph), "cuStreamEndCapture");
  GraphExec executable = nullptr;
  Result result = gpu->graphInstantiate(&executable, graph, 0);
  gpu->graphDestroy(graph);
  gpu->check(result, "cuGraphInstantiateWithFlags");
  return {gpu, executable};
}

} // namespace par::cuda
