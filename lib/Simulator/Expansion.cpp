// Expands an entry for one rank of each class into a graph: one node an instruction, joined across classes where they
// take part in one communication, with edges for queues and events.
#include "Expansion.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <numeric>

using namespace par;
using namespace par::format;

namespace {

/// Expands the entry of one rank of each class, and meets communications across classes.
class Expander {
public:
  Expander(const Bundle &bundle, const CostTable &costs, const RankPartition &partition, Expansion &result);

  void expandRank(uint32_t rank, const Entry &entry);
  /// Numbers the nodes that happen at once.
  void finish();

private:
  /// The place of a rank in a communicator of its program.
  struct Seat {
    const Communicator *comm = nullptr;
    uint32_t index = 0; ///< of the communicator
    Membership place;
  };
  /// Key that both sides of a communication compute alike: communicator, class of the group, sender and receiver (or
  /// all).
  using Channel = std::array<uint32_t, 4>;

  void takeSeats();
  void expandRun(uint32_t runIndex, const Run &run);
  size_t addNode(const Block &block, size_t index, const Run &run);
  void addLocal(const Instruction &instruction, uint32_t node);
  void add(uint32_t node, const Cost &cost, int64_t time);
  int64_t meet(const Instruction &instruction, const Run &run, uint32_t node);
  void join(const Channel &channel, uint32_t node);
  void link(const Instruction &instruction, const Run &run, uint32_t node);
  uint32_t find(uint32_t node);
  RankGroup groupOf(const std::vector<uint32_t> &members);

  const Bundle &bundle;
  const CostTable &costs;
  const RankPartition &partition;
  Expansion &result;
  std::map<std::string_view, uint32_t> communicators; ///< by name
  std::map<Channel, uint32_t> channels;               ///< their numbers
  std::vector<std::vector<uint32_t>> firstAt;         ///< by channel: the node that came first to each communication
  std::map<const uint32_t *, RankGroup> groups;       ///< by their list in the bundle
  llvm::DenseMap<const Instruction *, Cost> locals;
  int64_t processes = 1; ///< of a host that compute at once

  // State of the rank that is expanded.
  const Program *program = nullptr;
  uint32_t rank = 0, runIndex = 0;
  std::vector<std::optional<Seat>> seats; ///< by communicator of the program
  std::vector<int64_t> lastOnQueue;
  std::map<std::pair<uint32_t, uint32_t>, int64_t> lastSignal; ///< by event and slot
  std::vector<size_t> count;                                   ///< by channel: communications so far
};

} // namespace

static bool communicates(Op op) { return op == Op::Coll || op == Op::Send || op == Op::Recv || op == Op::Group; }

Expander::Expander(const Bundle &bundle, const CostTable &costs, const RankPartition &partition, Expansion &result)
    : bundle(bundle), costs(costs), partition(partition), result(result) {
  const Hardware &hardware = costs.hardware();
  processes = bundle.manifest.ranks.size();
  for (int64_t most : {hardware.ranks, hardware.cores})
    processes = most > 0 ? std::min(processes, most) : processes;
  for (auto [index, communicator] : llvm::enumerate(bundle.manifest.communicators))
    communicators.try_emplace(communicator.name, index);
}

void Expander::expandRank(uint32_t newRank, const Entry &entry) {
  rank = newRank;
  program = &bundle.programs[bundle.manifest.ranks[rank].role];
  lastOnQueue.assign(program->queues.size(), -1);
  lastSignal.clear();
  count.clear();
  takeSeats();
  for (auto [index, run] : llvm::enumerate(entry.runs))
    expandRun(index, run);
}

void Expander::takeSeats() {
  seats.clear();
  for (const Comm &comm : program->comms) {
    std::optional<Seat> &seat = seats.emplace_back();
    auto known = communicators.find(comm.name);
    if (known == communicators.end())
      continue;
    const Communicator &communicator = bundle.manifest.communicators[known->second];
    if (std::optional<Membership> place = membershipOf(communicator, rank))
      seat = {&communicator, known->second, *place};
  }
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
                          communicates(first.op) || crossesSpaces(*program, first)});
  result.before.push_back({lastOnQueue[first.queue], -1});
  result.joint.push_back(node);
  lastOnQueue[first.queue] = node;
  size_t length = first.op == Op::Group ? std::min<size_t>(first.n + 1, block.instructions.size() - index) : 1;
  int64_t latency = 0; // which the communications of a group take once
  for (const Instruction &instruction : llvm::ArrayRef(block.instructions).slice(index, length)) {
    if (communicates(instruction.op) && instruction.op != Op::Group)
      latency = std::max(latency, meet(instruction, run, node));
    else
      addLocal(instruction, node);
    link(instruction, run, node);
  }
  result.nodes[node].duration += latency;
  return length;
}

void Expander::add(uint32_t node, const Cost &cost, int64_t time) {
  result.nodes[node].duration += time;
  if (cost.ns > 0)
    result.nodes[node].source = std::max(result.nodes[node].source, cost.source);
}

/// Adds an instruction of one rank. Its time is the same in all runs of all ranks of the program.
void Expander::addLocal(const Instruction &instruction, uint32_t node) {
  auto [known, fresh] = locals.try_emplace(&instruction);
  if (fresh)
    known->second = localCost(*program, instruction, processes, costs);
  add(node, known->second, known->second.ns);
}

/// Joins the node with those of the other ranks in the same communication, and adds the transfer time of its bytes.
/// Returns the latency, ns.
int64_t Expander::meet(const Instruction &instruction, const Run &run, uint32_t node) {
  const std::optional<Seat> &seat = seats[instruction.comm];
  if (!seat || isSentToNobody(*seat->comm, instruction, run.microbatch, rank))
    return 0;
  constexpr uint32_t all = ~0u;
  uint32_t from = all, to = all;
  if (instruction.op != Op::Coll && !instruction.peer.empty()) {
    uint32_t peer = instruction.peer[run.microbatch % instruction.peer.size()];
    bool send = instruction.op == Op::Send;
    from = send ? seat->place.member : peer;
    to = send ? peer : seat->place.member;
  }
  join({seat->index, partition.groupClassOf[seat->index][seat->place.group], from, to}, node);
  const std::vector<uint32_t> &members = seat->comm->groups[seat->place.group];
  RankGroup group = instruction.op == Op::Coll || std::max(from, to) >= members.size()
                        ? groupOf(members)
                        : costs.hardware().groupOf({members[from], members[to]});
  Cost cost = communicationCost(instruction, group, costs);
  int64_t latency = std::min(latencyOf(instruction, group, costs), cost.ns);
  add(node, cost, cost.ns - latency);
  result.nodes[node].share = std::max<uint16_t>(result.nodes[node].share, costs.share(group));
  return latency;
}

/// The n-th communication of a rank on a channel is the n-th of all others there.
void Expander::join(const Channel &channel, uint32_t node) {
  uint32_t number = channels.try_emplace(channel, channels.size()).first->second;
  firstAt.resize(channels.size());
  count.resize(channels.size());
  size_t nth = count[number]++;
  if (nth == firstAt[number].size())
    firstAt[number].push_back(node);
  else
    result.joint[find(node)] = find(firstAt[number][nth]);
}

RankGroup Expander::groupOf(const std::vector<uint32_t> &members) {
  auto [known, fresh] = groups.try_emplace(members.data());
  if (fresh)
    known->second = costs.hardware().groupOf(llvm::to_vector_of<int64_t>(members));
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

llvm::Expected<Expansion> par::expandEntry(const Bundle &bundle, llvm::StringRef entry, const CostTable &costs,
                                           const RankPartition &partition) {
  Expansion result;
  Expander expander(bundle, costs, partition, result);
  for (uint32_t rank : partition.representatives) {
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
