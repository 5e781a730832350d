#include "par/Simulator/Simulator.h"
#include "Expansion.h"
#include "llvm/ADT/STLExtras.h"
#include <queue>

using namespace par;
using llvm::Twine;

namespace {

/// Gives every joint of an expansion its start. What becomes ready first runs first; ties go to the lower
/// number, so that the result is the same everywhere.
class Player {
public:
  Player(Expansion &expansion, unsigned ranks, const Hardware &hardware);
  /// False if some joint waits for ever.
  bool run();
  /// The first node that never ran.
  const PlayedInstruction &stuck() const;

private:
  void begin(uint32_t joint);
  void finish(uint32_t joint, int64_t end);
  /// When the engines and cores that a joint needs are free.
  int64_t freeAt(uint32_t joint);
  void occupy(uint32_t joint, int64_t end);
  bool takesEngine(uint32_t node) const {
    return expansion.nodes[node].duration > 0 && (!hardware.overlap || !expansion.nodes[node].communication);
  }
  size_t coresFor(uint32_t joint) const { return std::min(cores.size(), members[joint].size()); }

  Expansion &expansion;
  const Hardware &hardware;
  std::vector<std::vector<uint32_t>> members, users; ///< nodes of a joint; nodes that follow a node
  std::vector<uint32_t> waiting;                     ///< per joint: predecessors that have not ended
  std::vector<int64_t> ready, duration;              ///< per joint
  std::vector<int64_t> engines, cores;               ///< free from then on
  std::vector<bool> ran;
  using Candidate = std::pair<int64_t, uint32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
};

} // namespace

Player::Player(Expansion &expansion, unsigned ranks, const Hardware &hardware)
    : expansion(expansion), hardware(hardware), members(expansion.nodes.size()),
      users(expansion.nodes.size()), waiting(expansion.nodes.size(), 0), ready(expansion.nodes.size(), 0),
      duration(expansion.nodes.size(), 0), engines(ranks, 0), cores(hardware.cores, 0),
      ran(expansion.nodes.size(), false) {
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
  for (uint32_t joint = 0; joint < duration.size(); ++joint)
    if (!cores.empty() && members[joint].size() > cores.size())
      duration[joint] = duration[joint] * members[joint].size() / cores.size();
  for (uint32_t joint = 0; joint < members.size(); ++joint)
    if (!members[joint].empty() && waiting[joint] == 0)
      queue.push({0, joint});
}

int64_t Player::freeAt(uint32_t joint) {
  int64_t time = 0;
  if (duration[joint] == 0)
    return time;
  for (uint32_t node : members[joint])
    if (takesEngine(node))
      time = std::max(time, engines[expansion.nodes[node].rank]);
  llvm::sort(cores);
  return cores.empty() ? time : std::max(time, cores[coresFor(joint) - 1]);
}

void Player::occupy(uint32_t joint, int64_t end) {
  if (duration[joint] == 0)
    return;
  for (uint32_t node : members[joint])
    if (takesEngine(node))
      engines[expansion.nodes[node].rank] = end;
  for (size_t core = 0; core < coresFor(joint); ++core)
    cores[core] = end;
}

void Player::finish(uint32_t joint, int64_t end) {
  for (uint32_t node : members[joint])
    for (uint32_t user : users[node]) {
      uint32_t other = expansion.joint[user];
      ready[other] = std::max(ready[other], end);
      if (--waiting[other] == 0)
        queue.push({ready[other], other});
    }
}

bool Player::run() {
  while (!queue.empty()) {
    auto [time, joint] = queue.top();
    queue.pop();
    if (int64_t free = freeAt(joint); free > time) {
      queue.push({free, joint});
      continue;
    }
    int64_t end = time + duration[joint];
    occupy(joint, end);
    for (uint32_t node : members[joint]) {
      expansion.nodes[node].start = time;
      expansion.nodes[node].duration = duration[joint];
      ran[node] = true;
    }
    finish(joint, end);
  }
  return llvm::all_of(ran, [](bool done) { return done; });
}

const PlayedInstruction &Player::stuck() const {
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
  std::vector<std::pair<int64_t, int64_t>> local, all;
  for (const PlayedInstruction &node : nodes) {
    std::pair interval(node.start, node.start + node.duration);
    all.push_back(interval);
    if (!node.communication)
      local.push_back(interval);
  }
  int64_t compute = unionLength(local), busy = unionLength(all);
  return {compute, busy - compute, step - busy};
}

/// The nodes of each rank, which follow one another.
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
  Player player(*expansion, ranks.size(), hardware);
  if (!player.run()) {
    const PlayedInstruction &node = player.stuck();
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "rank " + Twine(node.rank) + " waits for ever in " +
            format::instructionId(bundle.programs[ranks[node.rank].role], node.block, node.instruction));
  }
  Simulation result;
  result.instructions = std::move(expansion->nodes);
  for (const PlayedInstruction &node : result.instructions)
    result.step = std::max(result.step, node.start + node.duration);
  result.memory.resize(bundle.programs.size());
  for (auto [rank, nodes] : llvm::enumerate(splitByRank(result.instructions, ranks.size()))) {
    result.ranks.push_back(accountFor(nodes, result.step));
    uint32_t role = ranks[rank].role;
    const format::Program &program = bundle.programs[role];
    if (result.memory[role].empty())
      result.memory[role] =
          liveBytes(program, program.entries[program.findEntry(std::string_view(entry))], nodes);
  }
  return result;
}
