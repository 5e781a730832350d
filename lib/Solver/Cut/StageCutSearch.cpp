// Stage cuts by dynamic programming over downsets. A cut into p stages is a chain of downsets (sets of nodes closed
// under producers) from the empty set to all nodes. The cost of a stage depends only on the two downsets around it: its
// time, its memory, and the links that end on it (a value made or used before it and used in it arrives once, whatever
// lies between). The objective, (m - 1) * largest stage + transfers, needs both terms of each partial chain: a Pareto
// front of (peak, transfers) pairs.
#include "par/Solver/Cut/StageCut.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <queue>

using namespace par;

namespace {

/// A downset as bits, with its sums.
struct Downset {
  std::vector<uint64_t> bits;
  unsigned size = 0;
  int64_t time = 0, weights = 0, saved = 0;

  bool has(unsigned node) const { return bits[node / 64] >> (node % 64) & 1; }
  bool contains(const Downset &other) const {
    for (size_t word = 0; word < bits.size(); ++word)
      if (other.bits[word] & ~bits[word])
        return false;
    return true;
  }
};

/// The best ways to cut a downset into a number of stages.
struct FrontEntry {
  int64_t peak;      ///< (m - 1) * largest stage time
  int64_t transfers; ///< ns; and of stages of different width their times
  unsigned from;     ///< the downset before the last stage
  unsigned entry;    ///< the entry of its front
};
using Front = std::vector<FrontEntry>;

/// The cost that one stage between two downsets adds.
struct StagePiece {
  int64_t time, weights, saved, received;
  std::vector<int64_t> transfers; ///< for each stage that it may be; a single entry if all links are equal

  int64_t transfersInto(unsigned stage) const { return transfers.size() == 1 ? transfers.front() : transfers[stage]; }
};

class CutSearch {
public:
  explicit CutSearch(const StageCutProblem &problem);
  /// All downsets if there are at most `maxDownsets`; otherwise the prefixes of a few topological orders.
  bool collectDownsets();
  /// The best chain; with `narrow`, one entry a front, which is quick and gives a bound for the real search.
  std::optional<StageCut> search(bool narrow, int64_t bound) const;
  /// Moves single nodes to the next or previous stage while that helps.
  void improve(StageCut &cut) const;
  /// ns of all nodes: the part of the step that no cut changes. 0 if stages differ in width.
  int64_t work() const { return problem.width.empty() ? sum : 0; }

private:
  Downset extend(const Downset &set, unsigned node) const;
  bool canAdd(const Downset &set, unsigned node) const;
  void addPrefixes(unsigned choice, std::map<std::vector<uint64_t>, Downset> &found) const;
  std::vector<const CutValue *> liveAt(const Downset &set) const;
  StagePiece piece(const Downset &from, const Downset &to, llvm::ArrayRef<const CutValue *> live) const;
  bool fits(const StagePiece &piece, unsigned stage) const;
  StageCut read(llvm::ArrayRef<std::vector<Front>> fronts) const;

  const StageCutProblem &problem;
  std::vector<std::vector<unsigned>> before, after;
  std::vector<Downset> sets; ///< by size
  int64_t sum = 0;
};

} // namespace

CutSearch::CutSearch(const StageCutProblem &problem)
    : problem(problem), before(problem.nodes.size()), after(problem.nodes.size()) {
  for (const CutValue &value : problem.values)
    for (unsigned user : value.users)
      if (value.producer) {
        before[user].push_back(*value.producer);
        after[*value.producer].push_back(user);
      }
  for (unsigned node = 0; node < problem.nodes.size(); ++node)
    sum += problem.nodeTime(node);
}

Downset CutSearch::extend(const Downset &set, unsigned node) const {
  Downset result = set;
  result.bits[node / 64] |= uint64_t(1) << (node % 64);
  ++result.size;
  result.time += problem.nodeTime(node);
  result.weights += problem.nodes[node].weights;
  result.saved += problem.nodes[node].saved;
  return result;
}

bool CutSearch::canAdd(const Downset &set, unsigned node) const {
  return !set.has(node) && llvm::all_of(before[node], [&](unsigned other) { return set.has(other); });
}

/// Prefixes of the topological order that takes the first (0), the last (1) or the latest freed (2) node.
void CutSearch::addPrefixes(unsigned choice, std::map<std::vector<uint64_t>, Downset> &found) const {
  size_t n = problem.nodes.size();
  std::vector<unsigned> waiting(n), ready;
  Downset set;
  set.bits.assign((n + 63) / 64, 0);
  for (unsigned node = 0; node < n; ++node) {
    waiting[node] = before[node].size();
    if (waiting[node] == 0)
      ready.push_back(node);
  }
  found.try_emplace(set.bits, set);
  while (!ready.empty()) {
    auto pick = choice == 0   ? llvm::min_element(ready)
                : choice == 1 ? llvm::max_element(ready)
                              : std::prev(ready.end());
    unsigned node = *pick;
    ready.erase(pick);
    set = extend(set, node);
    found.try_emplace(set.bits, set);
    for (unsigned user : after[node])
      if (--waiting[user] == 0)
        ready.push_back(user);
  }
}

bool CutSearch::collectDownsets() {
  Downset none;
  none.bits.assign((problem.nodes.size() + 63) / 64, 0);
  std::map<std::vector<uint64_t>, Downset> found{{none.bits, none}};
  std::queue<Downset> queue({none});
  while (!queue.empty() && found.size() <= problem.maxDownsets) {
    Downset set = std::move(queue.front());
    queue.pop();
    for (unsigned node = 0; node < problem.nodes.size(); ++node)
      if (canAdd(set, node)) {
        Downset next = extend(set, node);
        if (found.try_emplace(next.bits, next).second)
          queue.push(std::move(next));
      }
  }
  bool all = found.size() <= problem.maxDownsets;
  if (!all) {
    found.clear();
    for (unsigned choice : {0, 1, 2})
      addPrefixes(choice, found);
  }
  for (auto &[bits, set] : found)
    sets.push_back(set);
  llvm::sort(sets,
             [](const Downset &a, const Downset &b) { return std::tie(a.size, a.bits) < std::tie(b.size, b.bits); });
  return all;
}

/// The values that may still have to travel from `set`, and shared weights, which every stage holds that uses
/// them.
std::vector<const CutValue *> CutSearch::liveAt(const Downset &set) const {
  std::vector<const CutValue *> live;
  for (const CutValue &value : problem.values)
    if ((!value.producer || set.has(*value.producer)) &&
        llvm::any_of(value.users, [&](unsigned user) { return !set.has(user); }))
      live.push_back(&value);
  return live;
}

StagePiece CutSearch::piece(const Downset &from, const Downset &to, llvm::ArrayRef<const CutValue *> live) const {
  StagePiece result{to.time - from.time, to.weights - from.weights, to.saved - from.saved, 0, {}};
  result.transfers.assign(std::max<size_t>(1, problem.into.size()), 0);
  for (const CutValue *value : live) {
    auto inside = [&](unsigned user) { return to.has(user) && !from.has(user); };
    if (!llvm::any_of(value->users, inside))
      continue;
    auto earlier = [&](unsigned user) { return from.has(user); };
    if (value->producer)
      result.received += value->bytes;
    else
      result.weights += value->held;
    if (value->producer || llvm::any_of(value->users, earlier))
      for (auto [stage, time] : llvm::enumerate(result.transfers))
        time += problem.linkTime(*value, stage);
  }
  return result;
}

bool CutSearch::fits(const StagePiece &piece, unsigned stage) const {
  return problem.limit.empty() ||
         piece.weights + problem.inFlightOf(stage) * (problem.shareOf(stage, piece.saved) + piece.received) <=
             problem.limit[stage];
}

/// Adds an entry unless one is as good in both figures; drops those that it beats.
static void insert(Front &front, FrontEntry entry, bool narrow) {
  if (narrow && !front.empty()) {
    if (entry.peak + entry.transfers < front[0].peak + front[0].transfers)
      front[0] = entry;
    return;
  }
  for (const FrontEntry &other : front)
    if (other.peak <= entry.peak && other.transfers <= entry.transfers)
      return;
  llvm::erase_if(
      front, [&](const FrontEntry &other) { return other.peak >= entry.peak && other.transfers >= entry.transfers; });
  front.push_back(entry);
}

/// `bound`: only chains with a smaller (m - 1) * largest stage + transfers are searched.
std::optional<StageCut> CutSearch::search(bool narrow, int64_t bound) const {
  const unsigned stages = problem.stages;
  std::vector<std::vector<Front>> fronts(stages + 1, std::vector<Front>(sets.size()));
  fronts[0][0].push_back({0, 0, 0, 0});
  const std::vector<int64_t> width = problem.width.empty() ? std::vector<int64_t>(stages, 1) : problem.width;
  const int64_t widest = *llvm::max_element(width);
  std::vector<int64_t> behind(stages); // ranks of the stages after each
  for (unsigned s = stages - 1; s-- > 0;)
    behind[s] = behind[s + 1] + width[s + 1];
  auto reached = [&](unsigned index) {
    return llvm::any_of(fronts, [&](auto &ofStage) { return !ofStage[index].empty(); });
  };
  for (unsigned from = 0; from < sets.size(); ++from) {
    if (!reached(from))
      continue;
    auto live = liveAt(sets[from]);
    for (unsigned to = from + 1; to < sets.size(); ++to) {
      int64_t work = sets[to].time - sets[from].time, others = problem.microbatches - 1;
      if (others * (work / widest) >= bound || sets[to].size == sets[from].size || !sets[to].contains(sets[from]))
        continue;
      StagePiece stage = piece(sets[from], sets[to], live);
      for (unsigned s = 0; s < stages; ++s) {
        if (fronts[s][from].empty() || (s + 1 == stages) != (to + 1 == sets.size()) || !fits(stage, s))
          continue;
        int64_t left = behind[s], own = problem.shareOf(s, work), peak = others * own;
        int64_t rest = left == 0 ? 0 : others * ((sum - sets[to].time + left - 1) / left);
        for (auto [index, entry] : llvm::enumerate(fronts[s][from])) {
          int64_t newPeak = std::max(entry.peak, peak);
          int64_t transfers = entry.transfers + stage.transfersInto(s) + (problem.width.empty() ? 0 : own);
          if (std::max(newPeak, rest) + transfers < bound)
            insert(fronts[s + 1][to], {newPeak, transfers, from, static_cast<unsigned>(index)}, narrow);
        }
      }
    }
  }
  if (fronts[stages].back().empty())
    return std::nullopt;
  return read(fronts);
}

/// The assignment that the best entry of the last front stands for.
StageCut CutSearch::read(llvm::ArrayRef<std::vector<Front>> fronts) const {
  const Front &last = fronts[problem.stages].back();
  FrontEntry entry = *llvm::min_element(
      last, [](const FrontEntry &a, const FrontEntry &b) { return a.peak + a.transfers < b.peak + b.transfers; });
  std::vector<unsigned> stageOf(problem.nodes.size(), problem.stages - 1);
  for (unsigned stage = problem.stages - 1; stage > 0; --stage) {
    for (unsigned node = 0; node < stageOf.size(); ++node)
      if (sets[entry.from].has(node))
        stageOf[node] = stage - 1;
    entry = fronts[stage][entry.from][entry.entry];
  }
  return problem.evaluate(std::move(stageOf));
}

void CutSearch::improve(StageCut &cut) const {
  for (bool better = true; better;) {
    better = false;
    for (unsigned node = 0; node < cut.stageOf.size(); ++node)
      for (int step : {-1, 1}) {
        unsigned stage = cut.stageOf[node] + step;
        auto wrong = [&](unsigned other) { return step < 0 ? cut.stageOf[other] > stage : cut.stageOf[other] < stage; };
        if (stage >= problem.stages || llvm::any_of(step < 0 ? before[node] : after[node], wrong))
          continue;
        std::vector<unsigned> stageOf = cut.stageOf;
        stageOf[node] = stage;
        StageCut moved = problem.evaluate(std::move(stageOf));
        if (moved.step < cut.step && problem.isLegal(moved)) {
          cut = std::move(moved);
          better = true;
        }
      }
  }
}

llvm::Expected<StageCut> StageCutProblem::solve() const {
  if (llvm::Error error = check())
    return error;
  CutSearch search(*this);
  bool exact = search.collectDownsets();
  // Whether a stage fits does not depend on the front's entry, so the narrow search finds a cut if there is one.
  std::optional<StageCut> best = search.search(/*narrow=*/true, int64_t(1) << 62);
  if (!best)
    return solverError(llvm::Twine(exact ? "no cut of " : "found no cut of ") + llvm::Twine(nodes.size()) +
                       " nodes into " + llvm::Twine(stages) + " stages that fits the memory limits");
  search.improve(*best);
  if (std::optional<StageCut> better = search.search(/*narrow=*/false, best->step - search.work()))
    best = std::move(better);
  if (!exact)
    search.improve(*best);
  best->exact = exact || best->step == best->lowerBound;
  return *best;
}
