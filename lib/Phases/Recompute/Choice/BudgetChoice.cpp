// The cheapest choice of several cuttings into segments.
#include "BudgetChoice.h"

#include "par/Base/TypeSize.h"

#include <cmath>

using namespace mlir;

namespace par {

/// Bytes that no problem reaches, and ns that no choice takes.
static constexpr int64_t maxBytes = int64_t(1) << 48, maxNs = std::numeric_limits<int64_t>::max();

BudgetChoice::BudgetChoice(ArrayRef<StagePair> stages, const CostTable &costs, bool moves)
    : stages(stages), costs(costs), moves(moves) {
  for (const StagePair &stage : stages) {
    segments.emplace_back(stage.pair);
    cuts.push_back(segments.back().findCuts());
  }
}

BudgetChoice::Outcome BudgetChoice::saveAll() const {
  Outcome all;
  all.kept.moved.resize(stages.size());
  for (const Segments &forward : segments) {
    ValueSet &saved = all.kept.saved.emplace_back();
    for (const PlacedValue &value : forward.getValues())
      if (value.isResidual)
        saved.insert(value.value);
  }
  all.bytes = Cutting(stages, segments, costs, moves).findPeak(all.kept).bytes;
  return all;
}

Cutting BudgetChoice::cut(size_t level) const {
  Cutting cutting(stages, segments, costs, moves);
  for (unsigned index = 0; index < stages.size(); ++index)
    cutting.addStage(index, cuts[index][std::min(level, cuts[index].size() - 1)], stages[index].inFlight,
                     stages[index].inFlight - 1);
  return cutting;
}

/// The cuttings to try: the lowest peak, the ones after it more and more sparsely, no cut.
std::vector<size_t> BudgetChoice::levels() const {
  size_t count = 0;
  for (const auto &stageCuts : cuts)
    count = std::max(count, stageCuts.size());
  std::vector<size_t> tried;
  for (size_t level = 0; level < count; level = std::max(level + 1, std::min(2 * level, count - 1)))
    tried.push_back(level);
  return tried;
}

int64_t BudgetChoice::getBoundBytes() const {
  int64_t bound = 0;
  for (auto [index, stage] : llvm::enumerate(stages)) {
    Cutting uncut(stages, segments, costs, moves);
    uncut.addStage(index, {}, /*weight=*/1, /*lastWeight=*/1);
    int64_t bytes = uncut.getProblem().minBytes();
    for (BlockArgument argument : stage.pair.getForward().getBlock().getArguments())
      bytes += stage.pair.isReceived(argument) && stage.pair.isAtHand(argument) ? getByteSize(argument) : 0;
    bound = std::max(bound, bytes * stage.inFlight);
  }
  return bound;
}

/// Prices are powers of two, from what a byte of an elementwise result costs on a fast device to what one of a matmul's
/// costs on a slow one: figures of two models at one price can be subtracted.
std::vector<RecomputePoint> BudgetChoice::findFront() const {
  constexpr int cheapest = -14, dearest = 8;
  Cutting uncut(stages, segments, costs, /*moves=*/false);
  for (unsigned index = 0; index < stages.size(); ++index)
    uncut.addStage(index, {}, /*weight=*/1, /*lastWeight=*/1);
  std::vector<RecomputePoint> front;
  for (int power = cheapest; power <= dearest; ++power) {
    int64_t perNs = int64_t(1) << std::max(0, -power), perByte = int64_t(1) << std::max(0, power);
    RecomputeChoice choice = uncut.getProblem().cheapestAt(perNs, perByte);
    front.push_back({std::ldexp(1.0, power), choice.bytes, choice.recomputeNs});
  }
  return front;
}

/// The choice for the problem; nothing if it has none. `fits` is false if none was found; then it is only a bound.
std::optional<BudgetChoice::Outcome> BudgetChoice::solveOnce(Cutting &cutting) const {
  llvm::Expected<RecomputeChoice> choice = cutting.getProblem().solve();
  if (!choice) {
    llvm::consumeError(choice.takeError());
    return std::nullopt;
  }
  Outcome outcome;
  outcome.minNs = choice->minCost;
  outcome.ns = choice->cost;
  outcome.unhiddenNs = choice->cost - choice->recomputeNs;
  outcome.fits = choice->cost >= 0;
  if (outcome.fits) {
    outcome.kept = cutting.keptBy(*choice);
    outcome.bytes = cutting.findPeak(outcome.kept).bytes;
  }
  return outcome;
}

/// The choice of a cutting for so many bytes at the peak; nothing if none was found, or one that is not below `enough`
/// ns. `minNs` becomes a lower bound of the cutting's choices.
std::optional<BudgetChoice::Outcome> BudgetChoice::solve(Cutting &cutting, int64_t bytes, int64_t enough,
                                                         int64_t &minNs) const {
  constexpr size_t maxPeaks = 16;
  RecomputeProblem &problem = cutting.getProblem();
  problem.budget = maxBytes;
  minNs = 0;
  Cutting::Place worst = cutting.findPeak(saveAll().kept);
  while (problem.peaks.size() < maxPeaks) {
    problem.peaks.push_back(cutting.peakAt(worst, bytes));
    std::optional<Outcome> outcome = solveOnce(cutting);
    if (!outcome) {
      minNs = maxNs;
      return std::nullopt;
    }
    minNs = std::max(minNs, outcome->minNs);
    if (!outcome->fits || minNs >= enough)
      return std::nullopt;
    if (outcome->bytes <= bytes)
      return outcome;
    worst = cutting.findPeak(outcome->kept);
  }
  return std::nullopt;
}

BudgetChoice::Outcome BudgetChoice::findSmallest() const {
  Outcome smallest = saveAll();
  for (size_t level : levels()) {
    Cutting cutting = cut(level);
    cutting.getProblem().budget = cutting.getProblem().minBytes();
    std::optional<Outcome> outcome = solveOnce(cutting);
    if (outcome && outcome->fits && outcome->bytes < smallest.bytes)
      smallest = std::move(*outcome);
  }
  smallest.fits = false;
  return smallest;
}

BudgetChoice::Outcome BudgetChoice::choose(int64_t bytes) const {
  std::optional<Outcome> best;
  int64_t minNs = maxNs;
  for (size_t level : levels()) {
    Cutting cutting = cut(level);
    int64_t bound = 0;
    std::optional<Outcome> outcome = solve(cutting, bytes, best ? best->ns : maxNs, bound);
    minNs = std::min(minNs, bound);
    if (outcome && (!best || outcome->ns < best->ns))
      best = std::move(outcome);
  }
  if (!best)
    return findSmallest();
  best->minNs = std::min(minNs, best->ns);
  return *best;
}

} // namespace par
