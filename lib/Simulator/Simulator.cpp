// Plays an expanded entry in simulated time: a node starts when its predecessors have ended and its engines and cores
// are free, in order of readiness. Each rank's time is then split into compute, communication and waiting.
#include "par/Simulator/Simulator.h"
#include "Expansion.h"
#include "llvm/ADT/STLExtras.h"
#include <queue>

using namespace par;
using llvm::Twine;

namespace {

/// Gives every joint of an expansion its start. The joint that is ready first runs first, also after waiting for an
/// engine or a core. Ties go to the lower number, so that the result is the same on every machine.
class StepSimulation {
public:
  StepSimulation(Expansion &expansion, unsigned ranks, const Hardware &hardware);
  /// False if some joint waits for ever.
  bool run();
  /// The first node that never ran.
  const PlayedInstruction &stuck() const;

private:
  void begin(uint32_t joint);
  void finish(uint32_t joint, int64_t end);
  /// When the engines that a joint needs are free.
  int64_t enginesFree(uint32_t joint) const;
  /// When the cores that it needs are free on every host.
  int64_t coresFree(uint32_t joint);
  void occupy(uint32_t joint, int64_t end);
  bool takesEngine(uint32_t node) const {
    return expansion.nodes[node].duration > 0 && (!hardware.overlap || !expansion.nodes[node].communication);
  }
  size_t hostOf(uint32_t node) const { return hardware.ranks ? expansion.nodes[node].rank / hardware.ranks : 0; }
  /// Number of participating ranks on each host; empty if cores are not shared.
  std::vector<size_t> countByHost(uint32_t joint) const;

  Expansion &expansion;
  const Hardware &hardware;
  std::vector<std::vector<uint32_t>> members, users; ///< nodes of a joint; nodes that follow a node
  std::vector<uint32_t> waiting;                     ///< per joint: predecessors that have not ended
  std::vector<int64_t> ready, duration;              ///< per joint
  std::vector<int64_t> engines;                      ///< free from then on
  std::vector<std::vector<int64_t>> cores;           ///< of each host, free from then on
  std::vector<bool> ran;
  /// When a joint may be tried, since when it is ready, and its number.
  using Candidate = std::tuple<int64_t, int64_t, uint32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
};

} // namespace

StepSimulation::StepSimulation(Expansion &expansion, unsigned ranks, const Hardware &hardware)
    : expansion(expansion), hardware(hardware), members(expansion.nodes.size()), users(expansion.nodes.size()),
      waiting(expansion.nodes.size(), 0), ready(expansion.nodes.size(), 0), duration(expansion.nodes.size(), 0),
      engines(ranks, 0), ran(expansion.nodes.size(), false) {
  if (hardware.cores > 0) {
    size_t hosts = hardware.ranks ? (ranks + hardware.ranks - 1) / hardware.ranks : 1;
    cores.assign(hosts, std::vector<int64_t>(hardware.cores, 0));
  }
  for (uint32_t node = 0; node < expansion.nodes.size(); ++node) {
    uint32_t joint = expansion.joint[node];
    members[joint].push_back(node);
    duration[joint] = std::max(duration[joint], expansion.nodes[node].duration);
    for (int64_t before : expansion.before[node])
      if (before >= 0) {
        users[before].push_back(node);
        ++waiting[joint];
      }
  }
  // Ranks that communicate at once on fewer cores take turns.
  for (uint32_t joint = 0; joint < duration.size(); ++joint) {
    size_t most = hardware.cores;
    for (size_t count : countByHost(joint))
      most = std::max(most, count);
    if (most > static_cast<size_t>(hardware.cores))
      duration[joint] = duration[joint] * most / hardware.cores;
  }
  for (uint32_t joint = 0; joint < members.size(); ++joint)
    if (!members[joint].empty() && waiting[joint] == 0)
      queue.push({0, 0, joint});
}

std::vector<size_t> StepSimulation::countByHost(uint32_t joint) const {
  std::vector<size_t> counts(cores.size(), 0);
  if (!cores.empty())
    for (uint32_t node : members[joint])
      ++counts[hostOf(node)];
  return counts;
}

int64_t StepSimulation::enginesFree(uint32_t joint) const {
  int64_t time = 0;
  if (duration[joint] > 0)
    for (uint32_t node : members[joint])
      if (takesEngine(node))
        time = std::max(time, engines[expansion.nodes[node].rank]);
  return time;
}

int64_t StepSimulation::coresFree(uint32_t joint) {
  int64_t time = 0;
  if (duration[joint] > 0)
    for (auto [host, count] : llvm::enumerate(countByHost(joint)))
      if (count > 0) {
        llvm::sort(cores[host]);
        time = std::max(time, cores[host][std::min(count, cores[host].size()) - 1]);
      }
  return time;
}

void StepSimulation::occupy(uint32_t joint, int64_t end) {
  if (duration[joint] == 0)
    return;
  for (uint32_t node : members[joint])
    if (takesEngine(node))
      engines[expansion.nodes[node].rank] = end;
  for (auto [host, count] : llvm::enumerate(countByHost(joint)))
    for (size_t core = 0; core < std::min(count, cores[host].size()); ++core)
      cores[host][core] = end;
}

void StepSimulation::finish(uint32_t joint, int64_t end) {
  for (uint32_t node : members[joint])
    for (uint32_t user : users[node]) {
      uint32_t other = expansion.joint[user];
      ready[other] = std::max(ready[other], end);
      if (--waiting[other] == 0)
        queue.push({ready[other], ready[other], other});
    }
}

bool StepSimulation::run() {
  while (!queue.empty()) {
    auto [time, since, joint] = queue.top();
    queue.pop();
    int64_t could = std::max(since, enginesFree(joint));
    if (int64_t free = std::max(could, coresFree(joint)); free > time) {
      queue.push({free, since, joint});
      continue;
    }
    int64_t end = time + duration[joint];
    occupy(joint, end);
    for (uint32_t node : members[joint]) {
      expansion.nodes[node].start = time;
      expansion.nodes[node].waited = time - could;
      expansion.nodes[node].duration = duration[joint];
      ran[node] = true;
    }
    finish(joint, end);
  }
  return llvm::all_of(ran, [](bool done) { return done; });
}

const PlayedInstruction &StepSimulation::stuck() const {
  return expansion.nodes[std::find(ran.begin(), ran.end(), false) - ran.begin()];
}

/// Length of the union of intervals; sorts them.
static int64_t unionLength(std::vector<std::pair<int64_t, int64_t>> &intervals) {
  llvm::sort(intervals);
  int64_t length = 0, covered = 0;
  for (auto [begin, end] : intervals) {
    length += std::max<int64_t>(0, end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  return length;
}

static RankTime accountFor(llvm::ArrayRef<PlayedInstruction> nodes, int64_t step) {
  std::vector<std::pair<int64_t, int64_t>> local, all, wanting;
  for (const PlayedInstruction &node : nodes) {
    std::pair interval(node.start, node.start + node.duration);
    all.push_back(interval);
    wanting.emplace_back(node.start - node.waited, node.start + node.duration);
    if (!node.communication)
      local.push_back(interval);
  }
  int64_t compute = unionLength(local), busy = unionLength(all), wanted = unionLength(wanting);
  return {compute, busy - compute, wanted - busy, step - wanted};
}

/// Splits the nodes, which are sorted by rank, into one range per rank.
static std::vector<llvm::ArrayRef<PlayedInstruction>> splitByRank(const std::vector<PlayedInstruction> &nodes,
                                                                  unsigned ranks) {
  std::vector<llvm::ArrayRef<PlayedInstruction>> result;
  llvm::ArrayRef<PlayedInstruction> rest = nodes;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    auto ofRank = rest.take_while([&](const PlayedInstruction &node) { return node.rank == rank; });
    result.push_back(ofRank);
    rest = rest.drop_front(ofRank.size());
  }
  return result;
}

llvm::Expected<Simulation> par::simulate(const format::Bundle &bundle, llvm::StringRef entry,
                                         const Hardware &hardware) {
  auto expansion = expandEntry(bundle, entry, hardware);
  if (!expansion)
    return expansion.takeError();
  const auto &ranks = bundle.manifest.ranks;
  StepSimulation player(*expansion, ranks.size(), hardware);
  if (!player.run()) {
    const PlayedInstruction &node = player.stuck();
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "rank " + Twine(node.rank) + " waits for ever in " +
            format::instructionId(bundle.programs[ranks[node.rank].role], node.block, node.instruction));
  }
  Simulation result;
  for (const format::Program &program : bundle.programs)
    result.calls =
        std::max<int64_t>(result.calls, format::callsOf(program.entries[program.findEntry(std::string_view(entry))]));
  size_t onHost = hardware.ranks ? std::min<size_t>(hardware.ranks, ranks.size()) : ranks.size();
  if (hardware.cores > 0 && onHost > static_cast<size_t>(hardware.cores))
    result.cores = hardware.cores;
  result.instructions = std::move(expansion->nodes);
  for (const PlayedInstruction &node : result.instructions)
    result.step = std::max(result.step, node.start + node.duration);
  result.memory.resize(bundle.programs.size());
  for (auto [rank, nodes] : llvm::enumerate(splitByRank(result.instructions, ranks.size()))) {
    result.ranks.push_back(accountFor(nodes, result.step));
    uint32_t role = ranks[rank].role;
    const format::Program &program = bundle.programs[role];
    if (result.memory[role].empty())
      result.memory[role] = liveBytes(program, program.entries[program.findEntry(std::string_view(entry))], nodes);
  }
  return result;
}
