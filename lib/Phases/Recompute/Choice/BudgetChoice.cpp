// The cheapest choice of several cuttings into segments.
#include "BudgetChoice.h"

#include "par/Base/TypeSize.h"

#include <cmath>
#include <deque>
#include <tuple>

using namespace mlir;

namespace par {

BudgetChoice::BudgetChoice(ArrayRef<StagePair> stages, const CostTable &costs, bool moves)
    : stages(stages), costs(costs), moves(moves) {
  for (const StagePair &stage : stages)
    segments.emplace_back(stage.pair);
  addCuttings([](const Segments &forward) { return forward.findEvenCuts(); });
  addCuttings([](const Segments &forward) { return forward.findCuts(); });
}

/// The first cuts that were found, the ones after them more and more sparsely, the last ones. A stage with fewer has
/// its last ones.
void BudgetChoice::addCuttings(llvm::function_ref<std::vector<std::vector<unsigned>>(const Segments &)> find) {
  std::vector<std::vector<std::vector<unsigned>>> found;
  size_t count = 0;
  for (const Segments &forward : segments) {
    found.push_back(find(forward));
    if (found.back().empty())
      found.back().emplace_back();
    count = std::max(count, found.back().size());
  }
  for (size_t level = 0; level < count; level = std::max(level + 1, std::min(2 * level, count - 1))) {
    StageCuts cuts;
    for (const auto &stageCuts : found)
      cuts.push_back(stageCuts[std::min(level, stageCuts.size() - 1)]);
    if (!llvm::is_contained(cuttings, cuts))
      cuttings.push_back(std::move(cuts));
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

Cutting BudgetChoice::cut(const StageCuts &cuts) const {
  Cutting cutting(stages, segments, costs, moves);
  for (unsigned index = 0; index < stages.size(); ++index)
    cutting.addStage(index, cuts[index], stages[index].inFlight, stages[index].inFlight - 1);
  return cutting;
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

BudgetChoice::Outcome BudgetChoice::outcomeOf(const Cutting &cutting, const RecomputeChoice &choice) const {
  Outcome outcome;
  outcome.minNs = choice.minCost;
  outcome.ns = choice.cost;
  outcome.unhiddenNs = choice.cost - choice.recomputeNs;
  outcome.kept = cutting.keptBy(choice);
  outcome.bytes = cutting.findPeak(outcome.kept).bytes;
  return outcome;
}

BudgetChoice::Outcome BudgetChoice::findSmallest() const {
  Outcome smallest = saveAll();
  for (const StageCuts &cuts : cuttings) {
    Cutting cutting = cut(cuts);
    Outcome outcome = outcomeOf(cutting, cutting.getProblem().smallest());
    if (std::tie(outcome.bytes, outcome.ns) < std::tie(smallest.bytes, smallest.ns))
      smallest = std::move(outcome);
  }
  smallest.minNs = smallest.ns;
  smallest.fits = false;
  return smallest;
}

BudgetChoice::Outcome BudgetChoice::choose(int64_t bytes) const {
  constexpr int64_t maxNs = std::numeric_limits<int64_t>::max();
  KeptValues first = saveAll().kept;
  std::deque<CuttingSearch> searches; // they do not move
  for (const StageCuts &cuts : cuttings)
    searches.emplace_back(cut(cuts), bytes, first);
  const CuttingSearch *best = nullptr;
  int64_t bestNs = maxNs;
  while (true) {
    CuttingSearch *next = nullptr;
    for (CuttingSearch &search : searches)
      if (!search.hasEnded() && (!next || search.getBound() < next->getBound()))
        next = &search;
    if (!next || (best && next->getBound() >= bestNs - next->getTolerance()))
      break;
    next->step(bestNs);
    if (const auto &found = next->getBest(); found && found->cost < bestNs) {
      best = next;
      bestNs = found->cost;
    }
  }
  if (!best)
    return findSmallest();
  Outcome outcome = outcomeOf(best->getCutting(), *best->getBest());
  outcome.minNs = bestNs;
  for (const CuttingSearch &search : searches)
    outcome.minNs = std::min(outcome.minNs, search.getBound());
  return outcome;
}

} // namespace par
