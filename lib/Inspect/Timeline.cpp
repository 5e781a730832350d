// Spans of a played step. Instructions of a run become one span unless a gap between them is wide enough to be seen, or
// the communication differs. If that makes too many, the communication of a run is one span.
#include "par/Inspect/Timeline.h"

#include "BlockNames.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace par {

StringRef toString(SpanKind kind) {
  constexpr StringRef names[] = {"forward", "backward", "weight", "update", "communication", "other"};
  return names[static_cast<size_t>(kind)];
}

/// The kind of a block's compute.
static SpanKind kindOf(StringRef block) {
  if (std::optional<SlotKind> kind = slotKindOf(block))
    return *kind == SlotKind::Forward    ? SpanKind::Forward
           : *kind == SlotKind::Backward ? SpanKind::Backward
                                         : SpanKind::Weight;
  return block.split('.').second.starts_with("update") ? SpanKind::Update : SpanKind::Other;
}

namespace {

/// Spans of one class of ranks.
class RowBuilder {
public:
  RowBuilder(const format::Bundle &bundle, const format::Program &program, const format::Entry &entry, int64_t grid,
             bool joinsCommunication, StringMap<uint32_t> &labels)
      : bundle(bundle), program(program), entry(entry), grid(grid), joinsCommunication(joinsCommunication),
        labels(labels) {}

  std::vector<TimelineSpan> build(ArrayRef<PlayedInstruction> instructions, ArrayRef<bool> critical) {
    for (auto [node, isCritical] : zip(instructions, critical))
      if (node.duration > 0 && !node.communication)
        add(node, isCritical, compute);
    findBusyTimes(instructions);
    for (auto [node, isCritical] : zip(instructions, critical))
      if (node.duration > 0 && node.communication)
        add(node, isCritical, communication);
    append_range(compute, communication);
    return std::move(compute);
  }

private:
  /// Appends an instruction to the last span if that is of its run, label and neighbourhood.
  void add(const PlayedInstruction &node, bool isCritical, std::vector<TimelineSpan> &spans) {
    const format::Run &run = entry.runs[node.run];
    TimelineSpan span;
    span.kind = node.communication ? SpanKind::Communication : kindOf(program.blocks[run.block].name);
    bool ofMicrobatch = span.kind <= SpanKind::Weight || node.communication;
    span.microbatch = ofMicrobatch ? run.microbatch : -1;
    span.start = node.start;
    span.duration = span.busy = node.duration;
    span.critical = isCritical ? node.duration : 0;
    span.exposed = node.communication ? exposedOf(node) : 0;
    span.label = labels.try_emplace(labelOf(node), labels.size()).first->second;
    uint32_t &lastRun = node.communication ? lastCommunication : lastCompute;
    bool joins = !spans.empty() && lastRun == node.run && spans.back().label == span.label &&
                 ((node.communication && joinsCommunication) ||
                  node.start - (spans.back().start + spans.back().duration) < grid);
    lastRun = node.run;
    if (!joins) {
      spans.push_back(span);
      return;
    }
    TimelineSpan &last = spans.back();
    int64_t begin = std::min(last.start, span.start);
    last.duration = std::max(last.start + last.duration, span.start + span.duration) - begin;
    last.start = begin;
    last.busy = std::min(last.duration, last.busy + span.busy);
    last.critical += span.critical;
    last.exposed += span.exposed;
  }

  std::string labelOf(const PlayedInstruction &node) const {
    const format::Block &block = program.blocks[node.block];
    if (!node.communication)
      return block.name;
    if (joinsCommunication)
      return "all of " + block.name;
    ArrayRef<format::Instruction> all = block.instructions;
    const format::Instruction &first = all[node.instruction];
    const format::Instruction &said =
        first.op == format::Op::Group && node.instruction + 1 < all.size() ? all[node.instruction + 1] : first;
    std::string text(said.op == format::Op::Coll ? toString(said.coll) : toString(said.op));
    if (said.op == format::Op::Coll || said.op == format::Op::Send || said.op == format::Op::Recv)
      text += " " + program.comms[said.comm].name;
    if (said.provenance >= 0)
      text += " · " + bundle.provenance[said.provenance];
    return text;
  }

  void findBusyTimes(ArrayRef<PlayedInstruction> instructions) {
    for (const PlayedInstruction &node : instructions)
      if (node.duration > 0 && !node.communication)
        busy.emplace_back(node.start, node.start + node.duration);
    llvm::sort(busy);
  }

  /// ns of a communication in which no compute runs. Compute takes one engine, so that its intervals are disjoint.
  int64_t exposedOf(const PlayedInstruction &node) const {
    int64_t end = node.start + node.duration, covered = 0;
    auto at = partition_point(busy, [&](const auto &interval) { return interval.second <= node.start; });
    for (; at != busy.end() && at->first < end; ++at)
      covered += std::min(end, at->second) - std::max(node.start, at->first);
    return std::max<int64_t>(0, node.duration - covered);
  }

  const format::Bundle &bundle;
  const format::Program &program;
  const format::Entry &entry;
  int64_t grid;
  bool joinsCommunication;
  StringMap<uint32_t> &labels;
  std::vector<TimelineSpan> compute, communication;
  uint32_t lastCompute = ~0u, lastCommunication = ~0u; ///< the run of the last span
  std::vector<std::pair<int64_t, int64_t>> busy;
};

} // namespace

static std::vector<TimelineRow> makeRows(const format::Bundle &bundle, StringRef entry, const Simulation &simulation,
                                         int64_t grid, bool joinsCommunication, StringMap<uint32_t> &labels) {
  std::vector<bool> critical(simulation.instructions.size());
  for (uint32_t index : simulation.critical)
    critical[index] = true;
  std::vector<TimelineRow> rows(simulation.classBegins.size() - 1);
  for (auto [rank, ofClass] : enumerate(simulation.classOf))
    rows[ofClass].ranks.push_back(rank);
  for (auto [number, row] : enumerate(rows)) {
    const format::Program &program = bundle.programs[bundle.manifest.ranks[row.ranks.front()].role];
    row.role = program.name;
    row.time = simulation.ranks[row.ranks.front()];
    size_t begin = simulation.classBegins[number], end = simulation.classBegins[number + 1];
    SmallVector<bool> ofRow(critical.begin() + begin, critical.begin() + end);
    RowBuilder builder(bundle, program, program.entries[program.findEntry(std::string_view(entry))], grid,
                       joinsCommunication, labels);
    row.spans = builder.build(ArrayRef(simulation.instructions).slice(begin, end - begin), ofRow);
  }
  return rows;
}

TimelineFacts describeTimeline(const format::Bundle &bundle, StringRef entry, const Simulation &simulation,
                               size_t maxSpans) {
  TimelineFacts facts;
  facts.stepNs = simulation.step;
  facts.batches = simulation.calls;
  StringMap<uint32_t> labels;
  bool joins = false;
  // A coarser grid joins more; each run has a span at least, however coarse.
  for (facts.gridNs = std::max<int64_t>(1, simulation.step / 4000);; facts.gridNs *= joins ? 4 : 1, joins = true) {
    labels.clear();
    facts.rows = makeRows(bundle, entry, simulation, facts.gridNs, joins, labels);
    size_t spans = 0;
    for (const TimelineRow &row : facts.rows)
      spans += row.spans.size();
    if (spans <= maxSpans || facts.gridNs > simulation.step)
      break;
  }
  facts.labels.resize(labels.size());
  for (const auto &label : labels)
    facts.labels[label.second] = label.first().str();
  return facts;
}

} // namespace par
