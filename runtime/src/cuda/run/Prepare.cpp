#include "Executor.h"

#include <algorithm>
#include <map>
#include <span>

namespace par::cuda {

using core::Command;
using format::Op;

bool communicates(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv || op == Op::Group; }

uint32_t eventIndex(const format::Program &program, const format::Instruction &instruction, const format::Run &run) {
  uint32_t index = 0;
  for (uint32_t i = 0; i < instruction.event; ++i)
    index += program.events[i].depth;
  return index + format::slotOf(instruction.eventSlot, program.events[instruction.event].depth, run);
}

uint32_t eventCount(const format::Program &program) {
  uint32_t count = 0;
  for (const format::Event &event : program.events)
    count += event.depth;
  return count;
}

namespace {

constexpr uint64_t stagingAlignment = 256;

/// A graph holds local work only: communication is posted, data is fed and results are fetched outside.
bool capturable(const Command &step) { return !communicates(step.op) && step.op != Op::Feed && step.op != Op::Fetch; }

std::vector<Segment> cut(const core::ExpandedEntry &entry) {
  std::vector<Segment> segments;
  for (uint32_t i = 0; i < entry.steps.size(); ++i) {
    const Command &step = entry.steps[i];
    bool closed = capturable(step);
    if (segments.empty() || segments.back().closed != closed || entry.steps[i - 1].run != step.run)
      segments.push_back({i, i, closed, {}});
    Segment &segment = segments.back();
    segment.last = i + 1;
    if (std::find(segment.queues.begin(), segment.queues.end(), step.queue) == segment.queues.end())
      segment.queues.push_back(step.queue);
  }
  // A graph of only signals and waits, or of a single launch, is slower than issuing its steps.
  for (Segment &segment : segments) {
    auto works = std::count_if(entry.steps.begin() + segment.first, entry.steps.begin() + segment.last,
                               [](const Command &step) { return step.op != Op::Signal && step.op != Op::Wait; });
    segment.closed = segment.closed && works > 1;
  }
  return segments;
}

} // namespace

PreparedEntry::PreparedEntry(const Gpu &gpu, Kernels &table, const format::Program &program,
                             const core::ExpandedEntry &source)
    : source(source), kernelOf(source.steps.size()), eventOf(source.steps.size()), stagingOf(source.steps.size()),
      scratch(program.queues.size()) {
  std::map<std::pair<uint32_t, std::vector<uint64_t>>, uint32_t> known;
  uint64_t bytes = 0;
  for (size_t i = 0; i < source.steps.size(); ++i) {
    const Command &step = source.steps[i];
    const format::Instruction &instruction = *step.instruction;
    communicates |= cuda::communicates(step.op);
    if (step.op == Op::Signal)
      eventOf[i] = eventIndex(program, instruction, source.runs[step.run]);
    if (step.op == Op::Feed || step.op == Op::Fetch) {
      stagingOf[i] = bytes;
      bytes += (step.bytes + stagingAlignment - 1) / stagingAlignment * stagingAlignment;
    }
    if (step.op != Op::Kernel)
      continue;
    auto first = source.immediates.begin() + step.immediates;
    std::vector<uint64_t> immediates(first, first + static_cast<long>(instruction.imms.size()));
    auto [place, isNew] = known.try_emplace({instruction.kernel, immediates}, static_cast<uint32_t>(kernels.size()));
    if (isNew)
      kernels.push_back(table.bind(program.kernels[instruction.kernel], immediates));
    kernelOf[i] = place->second;
    scratch[step.queue] = std::max(scratch[step.queue], kernels[place->second].scratch);
  }
  hyperStaging = bytes;
  for (const format::Buffer &buffer : program.buffers) // one value a slot
    bytes += buffer.kind == format::BufferKind::Hyper ? buffer.at.size() * sizeof(uint64_t) : 0;
  bool feeds =
      std::any_of(source.steps.begin(), source.steps.end(), [](const Command &step) { return step.op == Op::Feed; });
  for (DeviceBuffer &staging : std::span(stagings).first(feeds ? 2 : 1))
    staging = DeviceBuffer(gpu, bytes, DeviceBuffer::Place::Host);
  segments = cut(source);
}

Streams::Streams(const Gpu &gpu, const format::Program &program) {
  for (uint32_t i = 0; i < program.queues.size(); ++i) {
    bool urgent = std::any_of(program.comms.begin(), program.comms.end(),
                              [&](const format::Comm &comm) { return comm.queue == i; });
    main = program.queues[i] == "compute" ? i : main;
    streams.push_back(makeStream(gpu, urgent && program.queues[i] != "compute"));
    tails.push_back(makeEvent(gpu));
  }
  for (uint32_t i = 0; i < eventCount(program); ++i)
    events.push_back(makeEvent(gpu));
  end = makeEvent(gpu);
  scratch.resize(program.queues.size());
}

} // namespace par::cuda
