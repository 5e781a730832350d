// The search for a stage cut: those that are good by a closed form (FrontSearch.cpp) are played and improved, and then
// all chains of downsets are tried that a bound does not exclude.
#include "FrontSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;

/// Slots that are played, and stages that are looked at, before the search for a better cut ends. Counts and not time,
/// so that the same problem has the same cut on every machine.
static constexpr int64_t maxPlayed = 20'000'000, maxPieces = 300'000;

namespace {

class CutSearch {
public:
  CutSearch(const StageCutProblem &problem, StepPlay play)
      : problem(problem), downsets(problem), play(std::move(play)) {
    downsets.collect();
    cost = this->play.slots();
  }

  llvm::Expected<StageCut> run();

private:
  /// Takes the assignment if it is legal and shorter than the best one.
  bool consider(std::vector<unsigned> stageOf);
  bool moveNodes();
  bool moveBorders();
  int64_t looseBound() const;
  /// Tries the chains that begin with `done`; false if that was too much.
  bool extend(unsigned from, std::vector<StageTimes> &done, std::vector<unsigned> &chain);
  int64_t boundOf(llvm::ArrayRef<StageTimes> done, const Downset &set) const;

  const StageCutProblem &problem;
  Downsets downsets;
  StepPlay play;
  int64_t cost, played = 0, pieces = 0;
  std::optional<StageCut> best;
};

} // namespace

bool CutSearch::consider(std::vector<unsigned> stageOf) {
  played += cost;
  StageCut cut = evaluateCut(problem, play, std::move(stageOf));
  if ((best && cut.step >= best->step) || !problem.isLegal(cut))
    return false;
  best = std::move(cut);
  return true;
}

/// Moves single nodes to the next or previous stage where that helps.
bool CutSearch::moveNodes() {
  bool better = false;
  for (unsigned node = 0; node < problem.nodes.size(); ++node)
    for (int step : {-1, 1}) {
      unsigned stage = best->stageOf[node] + step;
      if (played > maxPlayed || stage >= problem.stages || !downsets.mayMove(best->stageOf, node, stage))
        continue;
      std::vector<unsigned> stageOf = best->stageOf;
      stageOf[node] = stage;
      better |= consider(std::move(stageOf));
    }
  return better;
}

/// Moves one border at a time to each downset between its neighbours.
bool CutSearch::moveBorders() {
  bool better = false;
  for (unsigned border = 0; border + 1 < problem.stages; ++border)
    for (const Downset &set : downsets.sets) {
      auto isBetween = [&](unsigned node) {
        unsigned stage = best->stageOf[node];
        return (stage >= border || set.has(node)) && (stage <= border + 1 || !set.has(node));
      };
      if (played > maxPlayed || !llvm::all_of(llvm::seq<unsigned>(problem.nodes.size()), isBetween))
        continue;
      std::vector<unsigned> stageOf = best->stageOf;
      for (auto [node, stage] : llvm::enumerate(stageOf))
        if (stage == border || stage == border + 1)
          stage = set.has(node) ? border : border + 1;
      better |= stageOf != best->stageOf && consider(std::move(stageOf));
    }
  return better;
}

/// ns that no cut which begins with these stages is below: no stage begins before a microbatch has passed those before
/// it, and a device does all of its work. `set`: the nodes of these stages.
int64_t CutSearch::boundOf(llvm::ArrayRef<StageTimes> done, const Downset &set) const {
  int64_t passed = 0, bound = 0, m = problem.microbatches;
  std::vector<int64_t> load(problem.numDevices());
  for (auto [stage, times] : llvm::enumerate(done)) {
    int64_t &own = load[play.deviceOf(stage)];
    own += m * times.work.microbatch() + times.work.update;
    // Transfers within a device are none; where weight gradients have slots of their own, they may come last.
    bool moved = stage > 0 && play.deviceOf(stage) != play.deviceOf(stage - 1);
    bool both = !play.weightsApart() && times.work.backward > 0;
    passed += moved ? times.link * (both ? 2 : 1) : 0;
    bound = std::max({bound, own, passed + m * times.work.microbatch()});
    passed += times.work.forward + (both ? times.work.backward : 0);
  }
  if (done.size() == problem.stages || !problem.width.empty())
    return bound;
  int64_t left = problem.stages - done.size();
  int64_t rest = downsets.sets.back().work.microbatch() - set.work.microbatch();
  if (problem.stages == problem.numDevices())
    return std::max(bound, passed + m * ((rest + left - 1) / left));
  return bound;
}

bool CutSearch::extend(unsigned from, std::vector<StageTimes> &done, std::vector<unsigned> &chain) {
  const std::vector<Downset> &sets = downsets.sets;
  unsigned stage = done.size();
  Crossing crossing = downsets.crossingOf(sets[from]);
  for (unsigned to = from + 1; to < sets.size(); ++to) {
    bool isLast = to + 1 == sets.size();
    if (isLast != (stage + 1 == problem.stages) || sets[to].size == sets[from].size || !sets[to].contains(sets[from]))
      continue;
    int64_t least = sets[to].work.microbatch() - sets[from].work.microbatch(); // of all ranks, less all bonds
    if (problem.width.empty() && problem.microbatches * least >= best->step)
      continue;
    if (++pieces > maxPieces || played > maxPlayed)
      return false;
    StagePiece piece = downsets.piece(sets[from], sets[to], crossing);
    if (!downsets.fits(piece, stage))
      continue;
    done.push_back({problem.shareOf(stage, piece.work), piece.transfersInto(stage) / 2});
    chain.push_back(to);
    bool goesOn = true;
    if (boundOf(done, sets[to]) < best->step) {
      if (isLast) {
        std::vector<unsigned> stageOf(problem.nodes.size());
        for (unsigned node = 0; node < stageOf.size(); ++node)
          stageOf[node] = llvm::find_if(chain, [&](unsigned set) { return sets[set].has(node); }) - chain.begin();
        consider(std::move(stageOf));
      } else {
        goesOn = extend(to, done, chain);
      }
    }
    done.pop_back();
    chain.pop_back();
    if (!goesOn)
      return false;
  }
  return true;
}

/// ns by the closed form that some cut is nearly always below: no stage has twice its share of the work and one node
/// more, and each value crosses a border. Only a limit of memory forces longer ones.
int64_t CutSearch::looseBound() const {
  int64_t largest = 0, all = downsets.sets.back().work.microbatch(), sum = all, stages = problem.stages;
  if (!problem.width.empty())
    return int64_t(1) << 62;
  for (const CutNode &node : problem.nodes)
    largest = std::max(largest, node.work.microbatch());
  for (const CutValue &value : problem.values)
    for (unsigned stage = 1; stage < problem.stages; ++stage)
      sum += problem.linkTime(value, stage) / stages + 1;
  return (problem.microbatches - 1) * (2 * all / stages + largest) + sum + 1;
}

llvm::Expected<StageCut> CutSearch::run() {
  // Whether a stage fits does not depend on the front's entry, so the narrow search finds a cut if there is one.
  for (int64_t bound : {looseBound(), int64_t(1) << 62})
    if (!best)
      for (std::vector<unsigned> &stageOf : searchFronts(problem, downsets, /*narrow=*/true, bound))
        consider(std::move(stageOf));
  if (!best)
    return solverError(llvm::Twine(downsets.all ? "no cut of " : "found no cut of ") +
                       llvm::Twine(problem.nodes.size()) + " nodes into " + llvm::Twine(problem.stages) +
                       " stages that fits the memory limits");
  for (std::vector<unsigned> &stageOf :
       searchFronts(problem, downsets, /*narrow=*/false, closedForm(problem, *best) + 1))
    consider(std::move(stageOf));
  while (moveBorders() || moveNodes()) {
  }
  std::vector<StageTimes> done;
  std::vector<unsigned> chain;
  bool tried = extend(0, done, chain);
  if (!downsets.all)
    while (moveNodes()) {
    }
  best->exact = (downsets.all && tried) || best->step == best->lowerBound;
  return *best;
}

llvm::Expected<StageCut> StageCutProblem::solve() const {
  if (llvm::Error error = check())
    return error;
  auto play = StepPlay::make(*this);
  if (!play)
    return play.takeError();
  return CutSearch(*this, std::move(*play)).run();
}
