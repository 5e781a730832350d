// Local instructions take from their begin to the next one's, as calibration counts them. A communication takes from
// the last arrival of its ranks to the last end: waiting for who comes late is no work.
#include "TraceRows.h"

#include "MadeEntry.h"

#include <algorithm>
#include <bit>
#include <span>

namespace par::calibrate {

using format::CollKind;
using format::Instruction;
using format::Op;

namespace {

bool communicates(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv || op == Op::Group; }

std::pair<int64_t, int64_t> spanOf(const TracedStep &step) {
  int64_t begin = step.front().begin, end = step.front().end;
  for (const TracedInstruction &each : step)
    begin = std::min(begin, each.begin), end = std::max(end, each.end);
  return {begin, end};
}

/// The row of an instruction that reads an input or gives an output; of other local work as calibration has it.
std::optional<RowKey> localRow(const TracedInstruction &it) {
  const Instruction &instruction = it.instruction();
  if (instruction.op != Op::Feed && instruction.op != Op::Fetch)
    return rowOf(*it.program, instruction);
  auto bytes = static_cast<int64_t>(it.program->buffers[instruction.operands[0].buffer].bytes());
  return RowKey{"feeds", {instruction.op == Op::Feed ? "feed" : "fetch"}, {std::max<int64_t>(bytes, 1)}};
}

/// Messages in a row, whose latency a group has once.
int64_t messagesOf(const Instruction &it, size_t members) {
  if (it.op != Op::Coll)
    return 1;
  auto depth = static_cast<int64_t>(std::bit_width(members - 1));
  return it.coll == CollKind::AllReduce ? 2 * depth : depth;
}

class StepRows {
public:
  StepRows(const format::Bundle &bundle, const WrittenFile &file, Rows &rows)
      : bundle(bundle), file(file), rows(rows), processes(file.processes(bundle.manifest.ranks.size())) {}

  void add(const TracedStep &step) {
    for (size_t begin = 0; begin < step.size();) {
      size_t end = begin;
      while (end < step.size() && step[end].rank == step[begin].rank)
        ++end;
      addLocal(std::span(step).subspan(begin, end - begin));
      begin = end;
    }
    addCommunication(step);
  }

private:
  /// A communication of one rank: which, and the group that it is in.
  struct Part {
    const Instruction *instruction;
    const std::vector<uint32_t> *members;
    size_t parts; ///< of the same unit of the program
  };
  /// The same on all ranks of a communication: communicator, group, sender and receiver (or all).
  using Channel = std::tuple<std::string, uint32_t, uint32_t, uint32_t>;
  struct Joint {
    std::map<uint32_t, const TracedInstruction *> byRank;
    Part part;
  };

  void addLocal(std::span<const TracedInstruction> ofRank) {
    std::vector<const TracedInstruction *> others; // queues beside compute
    uint32_t mainQueue = computeQueue(*ofRank.front().program);
    for (const TracedInstruction &it : ofRank)
      if (it.instruction().queue != mainQueue)
        others.push_back(&it);
    const TracedInstruction *last = nullptr;
    for (const TracedInstruction &it : ofRank) {
      if (it.instruction().queue != mainQueue)
        continue;
      if (last)
        addLocal(*last, issueTime(*last, it, others));
      last = &it;
    }
    if (last)
      addLocal(*last, 0);
    for (const TracedInstruction *it : others)
      addLocal(*it, 0);
  }

  /// The time between two instructions of the main queue, if no other queue has it.
  static int64_t issueTime(const TracedInstruction &it, const TracedInstruction &next,
                           const std::vector<const TracedInstruction *> &others) {
    bool taken = std::any_of(others.begin(), others.end(), [&](const TracedInstruction *other) {
      return other->begin < next.begin && other->end >= it.end && next.begin > it.end;
    });
    return taken ? 0 : std::max<int64_t>(next.begin - it.end, 0);
  }

  void addLocal(const TracedInstruction &it, int64_t issue) {
    if (communicates(it.instruction().op))
      return;
    std::optional<RowKey> key = localRow(it);
    if (!key)
      return;
    auto together = static_cast<double>(file.together(it.instruction().op == Op::Call, processes));
    rows.add(*key, static_cast<double>(it.end - it.begin + issue) * 1000 / together);
  }

  /// The communications of a unit, those of a group by themselves.
  template <typename Visit>
  void forEachPart(const TracedInstruction &it, Visit &&visit) const {
    const Instruction &first = it.instruction();
    bool isGroup = first.op == Op::Group;
    size_t parts = isGroup ? first.n : 1;
    for (size_t i = 0; i < parts && it.index + isGroup + i < it.block->instructions.size(); ++i) {
      const Instruction &instruction = it.block->instructions[it.index + isGroup + i];
      const format::Communicator *communicator =
          bundle.manifest.findCommunicator(it.program->comms[instruction.comm].name);
      if (!communicator || format::isSentToNobody(*communicator, instruction, it.microbatch, it.rank))
        continue;
      auto place = communicator->groups.find(it.rank);
      if (!place)
        continue;
      constexpr uint32_t all = ~0u;
      uint32_t from = all, to = all;
      if (instruction.op != Op::Coll && !instruction.peer.empty()) {
        uint32_t peer = instruction.peer[static_cast<size_t>(it.microbatch) % instruction.peer.size()];
        from = instruction.op == Op::Send ? place->member : peer;
        to = instruction.op == Op::Send ? peer : place->member;
      }
      visit(Channel{communicator->name, place->group, from, to},
            Part{&instruction, &communicator->groups[place->group], parts});
    }
  }

  /// The n-th of a rank on a channel is the n-th of all others there.
  void addCommunication(const TracedStep &step) {
    std::map<std::pair<Channel, size_t>, Joint> joints;
    std::map<std::pair<uint32_t, Channel>, size_t> seen;
    computeEnds.clear();
    for (const TracedInstruction &it : step) {
      Op op = it.instruction().op;
      if (!communicates(op) && op != Op::Wait && op != Op::Signal)
        computeEnds[it.rank].push_back(it.end);
    }
    for (auto &[rank, ends] : computeEnds)
      std::sort(ends.begin(), ends.end());
    for (const TracedInstruction &it : step)
      if (communicates(it.instruction().op))
        forEachPart(it, [&](const Channel &channel, const Part &part) {
          Joint &joint = joints[{channel, seen[{it.rank, channel}]++}];
          joint.byRank[it.rank] = &it;
          joint.part = part;
        });
    for (const auto &[place, joint] : joints)
      addJoint(joint);
  }

  void addJoint(const Joint &joint) {
    const Instruction &it = *joint.part.instruction;
    size_t members = it.op == Op::Coll ? joint.part.members->size() : 2;
    if (joint.byRank.size() != members || members < 2)
      return;
    int64_t first = INT64_MAX, last = INT64_MIN, end = INT64_MIN;
    std::vector<uint64_t> hosts;
    uint64_t ofHost = std::max<uint64_t>(file.ranksOfHost(bundle.manifest.ranks.size()), 1);
    for (auto [rank, traced] : joint.byRank) {
      int64_t arrival = arrivalOf(*traced);
      first = std::min(first, arrival);
      last = std::max(last, arrival);
      end = std::max(end, traced->end);
      if (std::find(hosts.begin(), hosts.end(), rank / ofHost) == hosts.end())
        hosts.push_back(rank / ofHost);
    }
    int64_t latency = messagesOf(it, members) * file.number("latency", 0);
    int64_t whole = std::max<int64_t>(end - last - file.wakeup(last - first), 1);
    auto parts = static_cast<int64_t>(joint.part.parts);
    // A group of equal ones has its messages' latency once. Others of a group are as long as their mean.
    int64_t one = parts == 1 ? whole : (whole + (parts - 1) * std::min(latency, whole)) / parts;
    rows.add(rowOfJoint(it, members, hosts.size()), static_cast<double>(one));
  }

  /// When a rank turned to a communication. It may compute between posting one and looking for the others, which it
  /// does between instructions: from the last that ended before the communication did.
  int64_t arrivalOf(const TracedInstruction &it) {
    const std::vector<int64_t> &ends = computeEnds[it.rank];
    auto after = std::upper_bound(ends.begin(), ends.end(), it.end);
    return after == ends.begin() ? it.begin : std::max(it.begin, after[-1]);
  }

  static RowKey rowOfJoint(const Instruction &it, size_t members, size_t hosts) {
    auto bytes = static_cast<int64_t>(it.n * format::sizeOf(it.type));
    auto count = static_cast<int64_t>(hosts);
    if (it.op != Op::Coll)
      return {"sends", {}, {bytes, count}};
    return {"collectives", {std::string(format::toString(it.coll))}, {bytes, static_cast<int64_t>(members), count}};
  }

  const format::Bundle &bundle;
  const WrittenFile &file;
  Rows &rows;
  uint64_t processes;
  std::map<uint32_t, std::vector<int64_t>> computeEnds; ///< of a step, by rank, in order
};

} // namespace

std::vector<TracedStep> middleHalf(std::vector<TracedStep> steps) {
  std::vector<std::pair<int64_t, size_t>> byTime;
  for (size_t i = 0; i < steps.size(); ++i) {
    auto [begin, end] = spanOf(steps[i]);
    byTime.emplace_back(end - begin, i);
  }
  std::sort(byTime.begin(), byTime.end());
  std::vector<TracedStep> middle;
  for (size_t i = steps.size() / 4; i < steps.size() - steps.size() / 4; ++i)
    middle.push_back(std::move(steps[byTime[i].second]));
  return middle;
}

Rows rowsOfSteps(const format::Bundle &bundle, const std::vector<TracedStep> &steps, const WrittenFile &file) {
  Rows rows;
  StepRows adder(bundle, file, rows);
  for (const TracedStep &step : steps)
    adder.add(step);
  return rows;
}

} // namespace par::calibrate
