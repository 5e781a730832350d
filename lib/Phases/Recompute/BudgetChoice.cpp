// A recompute problem of the stages on the same ranks, for each cutting into segments.
#include "BudgetChoice.h"
#include "RecomputeTime.h"

#include "par/Base/TypeSize.h"

using namespace mlir;

namespace par {

/// A cutting of all stages, and its problem.
struct BudgetChoice::Cutting {
  std::vector<std::vector<unsigned>> cuts; ///< by stage
  RecomputeProblem problem;
  /// By value of the problem: the stage, and the values that it stands for, several of an op with several results.
  std::vector<std::pair<unsigned, SmallVector<Value, 1>>> values;
  int64_t lastBytes = 0; ///< residuals of the largest last segment
};

BudgetChoice::BudgetChoice(ArrayRef<StagePair> stages, const CostTable &costs) : stages(stages), costs(costs) {
  for (const StagePair &stage : stages) {
    segments.emplace_back(stage.pair);
    cuts.push_back(segments.back().findCuts());
  }
}

int64_t BudgetChoice::getAllBytes() const {
  int64_t bytes = 0;
  for (auto [stage, forward] : llvm::zip(stages, segments))
    for (const PlacedValue &value : forward.getValues())
      bytes += value.isResidual ? value.bytes * stage.inFlight : 0;
  return bytes;
}

/// Adds the values of a forward to the problem, with `weight` times their bytes, `lastWeight` times in the last
/// segment. An op with several results is a value of its own: saved, it saves all of them; recomputed, its results cost
/// nothing more.
void BudgetChoice::addStage(Cutting &cutting, unsigned index, int64_t weight, int64_t lastWeight) const {
  ArrayRef<unsigned> stageCuts = cutting.cuts[index];
  ValueSet crossing = segments[index].findCrossing(stageCuts);
  int64_t lastBytes = 0;
  DenseMap<Value, unsigned> number;
  auto add = [&](ForwardValue value, ValueRange results) {
    cutting.problem.values.push_back(std::move(value));
    cutting.values.emplace_back(index, SmallVector<Value, 1>(results));
    return static_cast<unsigned>(cutting.problem.values.size() - 1);
  };
  Block &body = stages[index].pair.getForward().getBlock();
  for (BlockArgument argument : body.getArguments()) {
    bool isAtHand = stages[index].pair.isAtHand(argument);
    number[argument] = add({"", 0, getByteSize(argument) * weight, {}, false, isAtHand}, argument);
  }
  auto placed = segments[index].getValues().begin();
  for (Operation &op : body.without_terminator()) {
    std::vector<unsigned> inputs;
    for (Value operand : op.getOperands())
      inputs.push_back(number[operand]);
    int64_t cost = timeInFragment(&op, costs);
    bool isLast = placed->made >= (stageCuts.empty() ? 0 : stageCuts.back());
    int64_t copies = isLast ? lastWeight : weight;
    if (op.getNumResults() > 1) {
      int64_t bytes = getByteSize(ValueRange(op.getResults())) * copies;
      inputs = {add({"", cost, bytes, inputs, false, placed->isFree}, op.getResults())};
      cost = 0;
    }
    for (Value result : op.getResults()) {
      const PlacedValue &value = *placed++;
      bool isForced = crossing.contains(result);
      number[result] = add({"", cost, value.bytes * copies, isForced ? std::vector<unsigned>() : inputs,
                            value.isResidual || isForced, value.isFree},
                           result);
      lastBytes += isLast && value.isResidual ? value.bytes : 0;
    }
  }
  cutting.lastBytes = std::max(cutting.lastBytes, lastBytes);
}

BudgetChoice::Cutting BudgetChoice::cut(size_t level) const {
  Cutting cutting;
  for (unsigned index = 0; index < stages.size(); ++index) {
    cutting.cuts.push_back(cuts[index][std::min(level, cuts[index].size() - 1)]);
    addStage(cutting, index, stages[index].inFlight, stages[index].inFlight - 1);
  }
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
    Cutting uncut;
    uncut.cuts.resize(stages.size());
    addStage(uncut, index, /*weight=*/1, /*lastWeight=*/1);
    int64_t bytes = uncut.problem.minBytes();
    for (BlockArgument argument : stage.pair.getForward().getBlock().getArguments())
      bytes += stage.pair.isReceived(argument) && stage.pair.isAtHand(argument) ? getByteSize(argument) : 0;
    bound = std::max(bound, bytes * stage.inFlight);
  }
  return bound;
}

/// The bytes at the worst begin of a segment's backward.
int64_t BudgetChoice::peakOf(const Cutting &cutting, ArrayRef<ValueSet> saved) const {
  std::vector<int64_t> whole(stages.size(), 0);
  for (unsigned index = 0; index < stages.size(); ++index)
    whole[index] = getByteSize(saved[index].getArrayRef());
  int64_t worst = 0;
  for (unsigned index = 0; index < stages.size(); ++index) {
    int64_t others = whole[index] * (stages[index].inFlight - 1), before = 0, live = 0;
    for (Value value : saved[index])
      before += isa<BlockArgument>(value) ? getByteSize(value) : 0;
    for (unsigned other = 0; other < stages.size(); ++other)
      others += other == index ? 0 : whole[other] * stages[other].inFlight;
    auto next = cutting.cuts[index].begin();
    for (const PlacedValue &value : segments[index].getValues()) {
      if (next != cutting.cuts[index].end() && value.made >= *next) {
        ++next;
        live = 0;
      }
      bool isSaved = saved[index].contains(value.value);
      before += isSaved ? value.bytes : 0;
      live += value.isResidual && !isSaved ? value.bytes : 0;
      worst = std::max(worst, others + before + live);
    }
  }
  return worst;
}

/// The choice for the problem's budget; nothing if it has none.
std::optional<BudgetChoice::Outcome> BudgetChoice::solveOnce(Cutting &cutting) const {
  llvm::Expected<RecomputeChoice> choice = cutting.problem.solve();
  if (!choice) {
    llvm::consumeError(choice.takeError());
    return std::nullopt;
  }
  Outcome outcome;
  outcome.saved.resize(stages.size());
  for (auto [index, isSaved] : llvm::enumerate(choice->saved))
    if (auto &[stage, results] = cutting.values[index]; isSaved)
      outcome.saved[stage].insert(results.begin(), results.end());
  outcome.bytes = peakOf(cutting, outcome.saved);
  outcome.ns = choice->cost;
  outcome.minNs = choice->minCost;
  return outcome;
}

/// The choice of a cutting for so many bytes at the peak; nothing if none was found. `minNs` becomes a lower bound of
/// the cutting's choices.
std::optional<BudgetChoice::Outcome> BudgetChoice::solve(Cutting &cutting, int64_t bytes, int64_t &minNs) const {
  constexpr int maxTries = 6;
  cutting.problem.budget = bytes - cutting.lastBytes;
  for (int tries = 0; tries < maxTries && cutting.problem.budget >= 0; ++tries) {
    std::optional<Outcome> outcome = solveOnce(cutting);
    if (outcome && tries == 0)
      minNs = outcome->minNs;
    if (!outcome || outcome->bytes <= bytes)
      return outcome;
    cutting.problem.budget -= outcome->bytes - bytes; // the peak is in a segment before the last one
  }
  return std::nullopt;
}

BudgetChoice::Outcome BudgetChoice::findSmallest() const {
  Outcome smallest; // without recomputation
  smallest.bytes = getAllBytes();
  for (const Segments &forward : segments) {
    ValueSet &saved = smallest.saved.emplace_back();
    for (const PlacedValue &value : forward.getValues())
      if (value.isResidual)
        saved.insert(value.value);
  }
  for (size_t level : levels()) {
    Cutting cutting = cut(level);
    cutting.problem.budget = cutting.problem.minBytes();
    std::optional<Outcome> outcome = solveOnce(cutting);
    if (outcome && outcome->bytes < smallest.bytes)
      smallest = std::move(*outcome);
  }
  smallest.fits = false;
  return smallest;
}

BudgetChoice::Outcome BudgetChoice::choose(int64_t bytes) const {
  std::optional<Outcome> best;
  int64_t minNs = std::numeric_limits<int64_t>::max();
  for (size_t level : levels()) {
    Cutting cutting = cut(level);
    int64_t bound = std::numeric_limits<int64_t>::max();
    std::optional<Outcome> outcome = solve(cutting, bytes, bound);
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
