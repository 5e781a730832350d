// The cost of a stage depends only on the two downsets around it: its time, its memory, and the links that end on it (a
// value made or used before it and used in it arrives once, whatever lies between).
#include "FrontSearch.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace par;

namespace {

/// The best ways to cut a downset into a number of stages.
struct FrontEntry {
  int64_t peak;   ///< (m - 1) * largest stage time
  int64_t sum;    ///< ns of the stages and the transfers
  unsigned from;  ///< the downset before the last stage
  unsigned entry; ///< the entry of its front
};
using Front = std::vector<FrontEntry>;

class FrontSearch {
public:
  FrontSearch(const StageCutProblem &problem, const Downsets &downsets, bool narrow, int64_t bound);

  std::vector<std::vector<unsigned>> run();

private:
  void extend(unsigned from, unsigned to, const StagePiece &piece);
  std::vector<unsigned> read(FrontEntry entry) const;

  const StageCutProblem &problem;
  const Downsets &downsets;
  const std::vector<Downset> &sets;
  bool narrow;
  int64_t bound, others; ///< m - 1
  std::vector<std::vector<Front>> fronts;
  std::vector<int64_t> behind; ///< ranks of the stages after each
  int64_t widest = 1;
};

} // namespace

FrontSearch::FrontSearch(const StageCutProblem &problem, const Downsets &downsets, bool narrow, int64_t bound)
    : problem(problem), downsets(downsets), sets(downsets.sets), narrow(narrow), bound(bound),
      others(problem.microbatches - 1), fronts(problem.stages + 1, std::vector<Front>(sets.size())),
      behind(problem.stages) {
  fronts[0][0].push_back({0, 0, 0, 0});
  for (unsigned s = problem.stages - 1; s-- > 0;)
    behind[s] = behind[s + 1] + (problem.width.empty() ? 1 : problem.width[s + 1]);
  if (!problem.width.empty())
    widest = *llvm::max_element(problem.width);
}

/// Adds an entry unless one is as good in both figures; drops those that it beats.
static void insert(Front &front, FrontEntry entry, bool narrow) {
  if (narrow && !front.empty()) {
    if (entry.peak + entry.sum < front[0].peak + front[0].sum)
      front[0] = entry;
    return;
  }
  for (const FrontEntry &other : front)
    if (other.peak <= entry.peak && other.sum <= entry.sum)
      return;
  llvm::erase_if(front, [&](const FrontEntry &other) { return other.peak >= entry.peak && other.sum >= entry.sum; });
  front.push_back(entry);
}

void FrontSearch::extend(unsigned from, unsigned to, const StagePiece &piece) {
  const unsigned stages = problem.stages;
  int64_t rest = sets.back().work.microbatch() - sets[to].work.microbatch();
  for (unsigned s = 0; s < stages; ++s) {
    if (fronts[s][from].empty() || (s + 1 == stages) != (to + 1 == sets.size()) || !downsets.fits(piece, s))
      continue;
    int64_t left = behind[s], own = problem.shareOf(s, piece.work).microbatch();
    int64_t peakLeft = left == 0 ? 0 : others * (rest / left), restLeft = rest / widest;
    for (auto [index, entry] : llvm::enumerate(fronts[s][from])) {
      int64_t peak = std::max(entry.peak, others * own), sum = entry.sum + own + piece.transfersInto(s);
      if (std::max(peak, peakLeft) + sum + restLeft < bound)
        insert(fronts[s + 1][to], {peak, sum, from, static_cast<unsigned>(index)}, narrow);
    }
  }
}

std::vector<std::vector<unsigned>> FrontSearch::run() {
  auto reached = [&](unsigned index) {
    return llvm::any_of(fronts, [&](auto &ofStage) { return !ofStage[index].empty(); });
  };
  for (unsigned from = 0; from < sets.size(); ++from) {
    if (!reached(from))
      continue;
    Crossing crossing = downsets.crossingOf(sets[from]);
    for (unsigned to = from + 1; to < sets.size(); ++to) {
      int64_t work = sets[to].work.microbatch() - sets[from].work.microbatch(); // less all bonds
      if (others * (work / widest) < bound && sets[to].size > sets[from].size && sets[to].contains(sets[from]))
        extend(from, to, downsets.piece(sets[from], sets[to], crossing));
    }
  }
  std::vector<std::vector<unsigned>> found;
  for (FrontEntry entry : fronts[problem.stages].back())
    found.push_back(read(entry));
  return found;
}

/// The assignment that an entry of the last front stands for.
std::vector<unsigned> FrontSearch::read(FrontEntry entry) const {
  std::vector<unsigned> stageOf(problem.nodes.size(), problem.stages - 1);
  for (unsigned stage = problem.stages - 1; stage > 0; --stage) {
    for (unsigned node = 0; node < stageOf.size(); ++node)
      if (sets[entry.from].has(node))
        stageOf[node] = stage - 1;
    entry = fronts[stage][entry.from][entry.entry];
  }
  return stageOf;
}

std::vector<std::vector<unsigned>> par::searchFronts(const StageCutProblem &problem, const Downsets &downsets,
                                                     bool narrow, int64_t bound) {
  return FrontSearch(problem, downsets, narrow, bound).run();
}

int64_t par::closedForm(const StageCutProblem &problem, const StageCut &cut) {
  return (problem.microbatches - 1) * *llvm::max_element(cut.stageTime) +
         std::accumulate(cut.stageTime.begin(), cut.stageTime.end(), cut.transfers);
}
