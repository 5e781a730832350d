// Plays an expanded entry in simulated time: a node starts when its predecessors have ended and its engines and cores
// are free, in order of readiness. Each rank's time is then split into compute, communication and waiting.
#include "par/Simulator/Simulator.h"
#include "Expansion.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>
#include <queue>

using namespace par;
using llvm::Twine;

namespace {

/// Lists of numbers in one allocation. `each` gives pairs of a list and what is appended to it, twice the same.
class NumberLists {
public:
  template <typename Each>
  NumberLists(size_t lists, Each each) : begins(lists + 1) {
    each([&](uint32_t list, uint32_t) { ++begins[list + 1]; });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    numbers.resize(begins.back());
    std::vector<size_t> next(begins.begin(), begins.end() - 1);
    each([&](uint32_t list, uint32_t number) { numbers[next[list]++] = number; });
  }
  llvm::ArrayRef<uint32_t> operator[](uint32_t list) const {
    return llvm::ArrayRef(numbers).slice(begins[list], begins[list + 1] - begins[list]);
  }

private:
  std::vector<size_t> begins;
  std::vector<uint32_t> numbers;
};

/// Calls `add` with a joint and each of its nodes.
template <typename Add>
void forMembers(const Expansion &expansion, Add add) {
  for (uint32_t node = 0; node < expansion.nodes.size(); ++node)
    add(expansion.joint[node], node);
}

/// Calls `add` with a node and each that follows it.
template <typename Add>
void forUsers(const Expansion &expansion, Add add) {
  for (uint32_t node = 0; node < expansion.nodes.size(); ++node)
    for (int64_t before : expansion.before[node])
      if (before >= 0)
        add(before, node);
}

/// Gives every joint of an expansion its start. The joint that is ready first runs first, also after waiting for an
/// engine or a core. Ties go to the lower number, so that the result is the same on every machine. At each moment
/// joints that take no time go first: only then is it known which others are ready, whatever the ranks' order.
class StepSimulation {
public:
  StepSimulation(Expansion &expansion, unsigned ranks, const CostTable &costs);
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
  /// Adds the time that communication beside it takes of it, as far as that has begun.
  void slow(uint32_t joint, int64_t time);
  /// Adds the time by which ranks that meet come later than predicted, and until those who waited see the last one.
  void meet(uint32_t joint, int64_t time);
  void occupy(uint32_t joint, int64_t end);
  bool takesEngine(uint32_t node) const {
    return expansion.nodes[node].duration > 0 && (!hardware.overlap || !expansion.nodes[node].communication);
  }
  size_t hostOf(uint32_t node) const { return hardware.ranks ? expansion.nodes[node].rank / hardware.ranks : 0; }
  /// Number of participating ranks on each host; empty if cores are not shared.
  std::vector<size_t> countByHost(uint32_t joint) const;

  Expansion &expansion;
  const CostTable &costs;
  const Hardware &hardware;
  NumberLists members, users;              ///< nodes of a joint; nodes that follow a node
  std::vector<uint32_t> waiting;           ///< per joint: predecessors that have not ended
  std::vector<int64_t> ready, duration;    ///< per joint
  std::vector<int64_t> engines;            ///< free from then on
  std::vector<std::vector<int64_t>> cores; ///< of each host, free from then on
  std::vector<bool> ran;
  /// Communication of a rank: when what has begun last ends, and the share of compute that it takes until then.
  struct Beside {
    int64_t end = 0, share = 0;
  };
  std::vector<Beside> beside;
  std::vector<int64_t> computed; ///< by a rank since it last met another
  /// At one moment joints without a time come first, then communication beside compute, which it slows, then others.
  enum class Turn { Instant, Beside, Other };
  Turn turnOf(uint32_t joint) const;
  /// When a joint may be tried, its turn, since when it is ready, and its number.
  using Candidate = std::tuple<int64_t, Turn, int64_t, uint32_t>;
  void enqueue(int64_t time, int64_t since, uint32_t joint) { queue.push({time, turnOf(joint), since, joint}); }

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
};

} // namespace

StepSimulation::StepSimulation(Expansion &expansion, unsigned ranks, const CostTable &costs)
    : expansion(expansion), costs(costs), hardware(costs.hardware()),
      members(expansion.nodes.size(), [&](auto add) { forMembers(expansion, add); }),
      users(expansion.nodes.size(), [&](auto add) { forUsers(expansion, add); }), waiting(expansion.nodes.size(), 0),
      ready(expansion.nodes.size(), 0), duration(expansion.nodes.size(), 0), engines(ranks, 0),
      ran(expansion.nodes.size(), false), beside(ranks), computed(ranks, 0) {
  if (hardware.cores > 0) {
    size_t hosts = hardware.ranks ? (ranks + hardware.ranks - 1) / hardware.ranks : 1;
    cores.assign(hosts, std::vector<int64_t>(hardware.cores, 0));
  }
  for (uint32_t node = 0; node < expansion.nodes.size(); ++node) {
    uint32_t joint = expansion.joint[node];
    duration[joint] = std::max(duration[joint], expansion.nodes[node].duration);
    waiting[joint] += llvm::count_if(expansion.before[node], [](int64_t before) { return before >= 0; });
  }
  // Ranks that communicate at once on fewer cores take turns.
  for (uint32_t joint = 0; joint < duration.size(); ++joint) {
    size_t most = hardware.cores;
    for (size_t count : countByHost(joint))
      most = std::max(most, count);
    if (most > static_cast<size_t>(hardware.cores))
      duration[joint] = duration[joint] * most / hardware.cores;
  }
  for (uint32_t joint = 0; joint < duration.size(); ++joint)
    if (!members[joint].empty() && waiting[joint] == 0)
      enqueue(0, 0, joint);
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

StepSimulation::Turn StepSimulation::turnOf(uint32_t joint) const {
  if (duration[joint] == 0)
    return Turn::Instant;
  return cores.empty() && !takesEngine(members[joint][0]) ? Turn::Beside : Turn::Other;
}

void StepSimulation::slow(uint32_t joint, int64_t time) {
  int64_t more = 0;
  for (uint32_t node : members[joint]) {
    const PlayedInstruction &played = expansion.nodes[node];
    Beside &other = beside[played.rank];
    if (played.communication) {
      if (int64_t end = time + duration[joint];
          played.share > 0 && std::pair<int64_t, int64_t>(end, played.share) > std::pair(other.end, other.share))
        other = {end, played.share};
      continue;
    }
    int64_t whole = duration[joint] * 1000 / (1000 - other.share), left = std::max<int64_t>(other.end - time, 0);
    more = std::max(more, std::min(whole, left) * other.share / 1000);
  }
  duration[joint] += more;
}

void StepSimulation::meet(uint32_t joint, int64_t time) {
  if (members[joint].size() < 2) {
    const PlayedInstruction &node = expansion.nodes[members[joint][0]];
    computed[node.rank] += node.communication ? 0 : duration[joint];
    return;
  }
  int64_t first = time, last = 0, second = 0, compute = 0;
  for (uint32_t node : members[joint]) {
    uint32_t rank = expansion.nodes[node].rank;
    int64_t arrival = takesEngine(node) ? engines[rank] : 0;
    for (int64_t before : expansion.before[node])
      if (before >= 0)
        arrival = std::max(arrival, expansion.nodes[before].start + expansion.nodes[before].duration);
    first = std::min(first, arrival);
    second = std::max(second, std::min(last, arrival));
    last = std::max(last, arrival);
    compute = std::max(compute, computed[rank]);
    computed[rank] = 0;
  }
  duration[joint] += costs.meeting({compute, last - first, last - second});
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
        enqueue(ready[other], ready[other], other);
    }
}

bool StepSimulation::run() {
  while (!queue.empty()) {
    auto [time, takesTime, since, joint] = queue.top();
    queue.pop();
    int64_t could = std::max(since, enginesFree(joint));
    if (int64_t free = std::max(could, coresFree(joint)); free > time) {
      enqueue(free, since, joint);
      continue;
    }
    slow(joint, time);
    meet(joint, time);
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

/// Whether ranks of a class have equal times: not where communication takes engines or cores, for then two of them may
/// be ready at once on ranks of one class, and one of these goes first; nor where times depend on who waits for whom.
static bool areFolded(const CostTable &costs, Folding folding) {
  const Hardware &hardware = costs.hardware();
  constexpr int64_t second = 1'000'000'000;
  bool waits = costs.meeting({second, second, 0}) > 0;
  return folding == Folding::Exact && hardware.overlap && hardware.cores == 0 && !waits;
}

/// Cores of a host, if its ranks share them.
static int64_t sharedCores(const Hardware &hardware, size_t ranks) {
  size_t onHost = hardware.ranks ? std::min<size_t>(hardware.ranks, ranks) : ranks;
  return hardware.cores > 0 && onHost > static_cast<size_t>(hardware.cores) ? hardware.cores : 0;
}

/// The begin of each class in the nodes, which go class by class; and the end.
static std::vector<size_t> findClasses(llvm::ArrayRef<PlayedInstruction> nodes, const RankPartition &partition) {
  std::vector<size_t> result;
  size_t node = 0;
  for (uint32_t rank : partition.representatives) {
    result.push_back(node);
    node += nodes.drop_front(node).take_while([&](const PlayedInstruction &each) { return each.rank == rank; }).size();
  }
  result.push_back(node);
  return result;
}

/// The times of ranks and the memory of roles.
static void account(const format::Bundle &bundle, llvm::StringRef entry, const RankPartition &partition,
                    Simulation &result) {
  std::vector<RankTime> times;
  for (uint32_t rank : partition.representatives)
    times.push_back(accountFor(result.instructionsOf(rank), result.step));
  result.memory.resize(bundle.programs.size());
  for (auto [rank, ofClass] : llvm::enumerate(partition.classOf)) {
    result.ranks.push_back(times[ofClass]);
    uint32_t role = bundle.manifest.ranks[rank].role;
    const format::Program &program = bundle.programs[role];
    if (result.memory[role].empty())
      result.memory[role] =
          liveBytes(program, program.entries[program.findEntry(std::string_view(entry))], result.instructionsOf(rank));
  }
}

llvm::Expected<Simulation> par::simulate(const format::Bundle &bundle, llvm::StringRef entry, const CostTable &costs,
                                         Folding folding) {
  const Hardware &hardware = costs.hardware();
  RankPartition partition = areFolded(costs, folding) ? partitionRanks(bundle, hardware) : separateRanks(bundle);
  auto expansion = expandEntry(bundle, entry, costs, partition);
  if (!expansion)
    return expansion.takeError();
  const auto &ranks = bundle.manifest.ranks;
  StepSimulation player(*expansion, ranks.size(), costs);
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
  result.cores = sharedCores(hardware, ranks.size());
  result.critical = findCritical(*expansion, hardware);
  result.instructions = std::move(expansion->nodes);
  for (const PlayedInstruction &node : result.instructions)
    result.step = std::max(result.step, node.start + node.duration);
  result.classOf = partition.classOf;
  result.classBegins = findClasses(result.instructions, partition);
  account(bundle, entry, partition, result);
  return result;
}
