// Expands an entry for all ranks into a graph: one node an instruction, joined across ranks if they take part in one
// communication, with edges for queues and events.
#include "Expansion.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <numeric>

using namespace par;
using namespace par::format;

namespace {

/// Expands entries rank by rank, and joins communications across ranks.
class Expander {
public:
  Expander(const Bundle &bundle, const Hardware &hardware, Expansion &result)
      : bundle(bundle), hardware(hardware), result(result) {}

  void expandRank(uint32_t rank, const Entry &entry);
  /// Numbers the nodes that happen at once.
  void finish();

private:
  /// Key that both sides of a communication compute alike: communicator, group, sender, receiver (or all), and the
  /// number of earlier ones with the same four.
  using CollectiveKey = std::array<uint64_t, 5>;

  void expandRun(uint32_t runIndex, const Run &run);
  size_t addNode(const Block &block, size_t index, const Run &run);
  int64_t meet(const Instruction &instruction, const Run &run, uint32_t node);
  void link(const Instruction &instruction, const Run &run, uint32_t node);
  uint32_t find(uint32_t node);
  RankGroup groupOf(const std::vector<uint32_t> &members);
  std::optional<Membership> membershipIn(const Communicator &comm, uint32_t rank);

  const Bundle &bundle;
  const Hardware &hardware;
  Expansion &result;
  std::map<CollectiveKey, uint32_t> firstAt;
  std::map<const uint32_t *, RankGroup> groups;                                       ///< by their list in the bundle
  std::map<const Communicator *, std::vector<std::optional<Membership>>> memberships; ///< of each rank

  // State of the rank that is being expanded.
  const Program *program = nullptr;
  uint32_t rank = 0, runIndex = 0;
  std::vector<int64_t> lastOnQueue;
  std::map<std::pair<uint32_t, uint32_t>, int64_t> lastSignal; ///< by event and slot
  std::map<std::array<uint64_t, 4>, uint64_t> count;           ///< of communications of a kind
};

} // namespace

static bool communicates(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv || op == Op::Group; }

void Expander::expandRank(uint32_t newRank, const Entry &entry) {
  rank = newRank;
  program = &bundle.programs[bundle.manifest.ranks[rank].role];
  lastOnQueue.assign(program->queues.size(), -1);
  lastSignal.clear();
  count.clear();
  for (auto [index, run] : llvm::enumerate(entry.runs))
    expandRun(index, run);
}

void Expander::expandRun(uint32_t index, const Run &run) {
  runIndex = index;
  const Block &block = program->blocks[run.block];
  for (size_t at = 0; at < block.instructions.size();)
    at += addNode(block, at, run);
}

/// Adds the instruction at `index`, or the group that begins there; returns the number of instructions.
size_t Expander::addNode(const Block &block, size_t index, const Run &run) {
  const Instruction &first = block.instructions[index];
  uint32_t node = result.nodes.size();
  result.nodes.push_back({rank, first.queue, run.block, static_cast<uint32_t>(index), runIndex,
                          communicates(first.op) || crossesSpaces(*program, first), 0, 0});
  result.before.push_back({lastOnQueue[first.queue], -1});
  result.joint.push_back(node);
  lastOnQueue[first.queue] = node;
  size_t length = first.op == Op::Group ? std::min<size_t>(first.n + 1, block.instructions.size() - index) : 1;
  int64_t latency = 0; // which the communications of a group take once
  for (const Instruction &instruction : llvm::ArrayRef(block.instructions).slice(index, length)) {
    if (communicates(instruction.op) && instruction.op != Op::Group)
      latency = std::max(latency, meet(instruction, run, node));
    else
      result.nodes[node].duration += instructionTime(*program, instruction, 1, hardware);
    link(instruction, run, node);
  }
  result.nodes[node].duration += latency;
  return length;
}

/// Joins the node with those of the other ranks in the same communication, and adds the transfer time of its bytes.
/// Returns the latency, ns.
int64_t Expander::meet(const Instruction &instruction, const Run &run, uint32_t node) {
  const auto &communicators = bundle.manifest.communicators;
  const Communicator *comm = bundle.manifest.findCommunicator(program->comms[instruction.comm].name);
  auto membership = comm ? membershipIn(*comm, rank) : std::nullopt;
  if (!membership || isSentToNobody(*comm, instruction, run.microbatch, rank))
    return 0;
  uint64_t from = ~0ull, to = ~0ull;
  if (instruction.op != Op::Coll && !instruction.peer.empty()) {
    uint32_t peer = instruction.peer[run.microbatch % instruction.peer.size()];
    bool send = instruction.op == Op::Send;
    from = send ? membership->member : peer;
    to = send ? peer : membership->member;
  }
  uint64_t place = comm - communicators.data();
  uint64_t number = count[{place, membership->group, from, to}]++;
  CollectiveKey meeting{place, membership->group, from, to, number};
  auto [entry, isFirst] = firstAt.try_emplace(meeting, node);
  if (!isFirst)
    result.joint[find(node)] = find(entry->second);
  const std::vector<uint32_t> &members = comm->groups[membership->group];
  RankGroup group = instruction.op == Op::Coll || std::max(from, to) >= members.size()
                        ? groupOf(members)
                        : hardware.groupOf({members[from], members[to]});
  int64_t latency = latencyOf(instruction, group, hardware);
  result.nodes[node].duration += instructionTime(*program, instruction, group, hardware) - latency;
  return latency;
}

std::optional<Membership> Expander::membershipIn(const Communicator &comm, uint32_t rank) {
  auto [known, fresh] = memberships.try_emplace(&comm, bundle.manifest.ranks.size());
  if (fresh)
    for (auto [group, members] : llvm::enumerate(comm.groups))
      for (auto [place, member] : llvm::enumerate(members))
        known->second[member] = Membership{uint32_t(group), uint32_t(place)};
  return known->second[rank];
}

RankGroup Expander::groupOf(const std::vector<uint32_t> &members) {
  auto [known, fresh] = groups.try_emplace(members.data());
  if (fresh)
    known->second = hardware.groupOf(llvm::to_vector_of<int64_t>(members));
  return known->second;
}

/// A wait follows the last signal of its event's slot that was issued before it.
void Expander::link(const Instruction &instruction, const Run &run, uint32_t node) {
  if (instruction.op != Op::Signal && instruction.op != Op::Wait)
    return;
  const Event &event = program->events[instruction.event];
  std::pair slot(instruction.event, slotOf(instruction.eventSlot, event.depth, run));
  if (instruction.op == Op::Signal)
    lastSignal[slot] = node;
  else if (auto found = lastSignal.find(slot); found != lastSignal.end())
    result.before[node][1] = found->second;
}

uint32_t Expander::find(uint32_t node) {
  while (result.joint[node] != node)
    node = result.joint[node] = result.joint[result.joint[node]];
  return node;
}

void Expander::finish() {
  for (uint32_t node = 0; node < result.joint.size(); ++node)
    result.joint[node] = find(node);
}

llvm::Expected<Expansion> par::expandEntry(const Bundle &bundle, llvm::StringRef entry, const Hardware &hardware) {
  Expansion result;
  Expander expander(bundle, hardware, result);
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    const Program &program = bundle.programs[bundle.manifest.ranks[rank].role];
    uint32_t index = program.findEntry(std::string_view(entry));
    if (index == noIndex)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "program '" + program.name + "' has no entry '" + entry + "'");
    expander.expandRank(rank, program.entries[index]);
  }
  expander.finish();
  return result;
}
