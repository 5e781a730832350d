// Lower bounds of recomputation by the front of a profile, as lines under it.
#include "MemoryBound.h"

#include <algorithm>
#include <limits>

namespace par {

MemoryBound::MemoryBound(const Candidate &candidate, const ModelCost &cost, const Space &space, int64_t limit)
    : candidate(candidate), cost(cost), space(space), limit(static_cast<double>(limit)), all(cost.all()) {}

int64_t MemoryBound::inFlight(int64_t stage) const {
  int64_t stages = candidate.stages, chunks = candidate.chunks;
  if (stages == 1)
    return 1;
  if (candidate.schedule == "interleaved" && chunks > 1) {
    // Forwards before the first backward, which go through the chunks in turn, so many microbatches each time.
    int64_t warm = 2 * (stages - stage - 1) + (chunks - 1) * stages + 1, turn = stages * chunks;
    int64_t least = warm / turn * stages + std::max<int64_t>(0, warm % turn - stages * (chunks - 1));
    return std::clamp<int64_t>(least, 1, candidate.microbatches);
  }
  if (chunks > 1 || (candidate.schedule != "1f1b" && candidate.schedule != "zb-h1"))
    return 1;
  return std::min(candidate.microbatches, stages - stage);
}

/// Whether a profile has the front, and nothing but recomputation lowers what is saved.
bool MemoryBound::binds() const {
  return space.trains && space.open.recompute && space.open.offload && !all.prices.empty();
}

/// Bytes that a rank with such a part of the model holds beside what it saves. Gradients are there once a backward has
/// begun before; of rounded parameters those that backward reads again.
double MemoryBound::stays(const RankCost &part, int64_t held) const {
  auto data = static_cast<double>(candidate.data);
  double bytes = static_cast<double>(part.params) / (space.shardsParams(candidate) ? data : 1);
  if (candidate.microbatches > held)
    bytes += static_cast<double>(part.grads) / (candidate.zero >= 2 ? data : 1);
  if (!candidate.offloads)
    bytes += static_cast<double>(part.states) / (candidate.zero >= 1 ? data : 1);
  return std::max(0.0, bytes);
}

double MemoryBound::priced(const RankCost &part, size_t price, int64_t held) const {
  double times = part.prices[price],
         bytes = static_cast<double>(part.kept[price]) + stays(part, held) / static_cast<double>(held);
  return static_cast<double>(part.again[price]) + times * bytes;
}

/// The part of a model's time that no communication of tensor axes can hide: recomputed collectives may run beside.
static double localShare(const RankCost &all) {
  auto both = static_cast<double>(all.forward + all.backward);
  return both > 0 ? std::clamp(static_cast<double>(all.compute) / both, 0.0, 1.0) : 0;
}

double MemoryBound::wholeNs() const {
  if (!binds() || candidate.stages > 1)
    return 0;
  double most = 0;
  for (size_t price = 0; price < all.prices.size(); ++price)
    most = std::max(most, priced(all, price, 1) - all.prices[price] * limit);
  return most * localShare(all);
}

std::vector<MemoryBound::Line> MemoryBound::linesOf(int64_t held) const {
  auto work = static_cast<double>(all.forward + all.backward);
  double times = localShare(all) * static_cast<double>(candidate.microbatches);
  std::vector<Line> lines;
  for (size_t price = 1; price < all.prices.size(); ++price) {
    double least = std::numeric_limits<double>::infinity(); // a stage has the parts that need least for their work
    for (const RankCost *part : {&cost.layer, &cost.rest})
      if (int64_t ownWork = part->forward + part->backward; ownWork > 0 && price < part->prices.size())
        least = std::min(least, priced(*part, price, held) * work / static_cast<double>(ownWork));
    if (least > 0 && least < std::numeric_limits<double>::infinity())
      lines.push_back({times * all.prices[price] * limit / static_cast<double>(held), times * least});
  }
  return lines;
}

/// Whether the stages can have the whole model in such a step. `lines`: of each stage.
bool MemoryBound::isEnough(double step, double wait, double own, llvm::ArrayRef<std::vector<Line>> lines) const {
  double dealt = 0;
  for (const std::vector<Line> &ofStage : lines) {
    double room = step - wait * dealt, share = room / own;
    for (const auto &[off, each] : ofStage)
      share = std::min(share, (room + off) / (own + each));
    dealt += std::max(0.0, share);
    if (dealt >= 1)
      return true;
  }
  return false;
}

double MemoryBound::chainNs(double wait, double own, double least) const {
  if (!binds() || candidate.stages == 1 || own <= 0)
    return least;
  std::vector<std::vector<Line>> lines;
  for (int64_t stage = 0; stage < candidate.stages; ++stage) {
    bool isAsBefore = stage > 0 && inFlight(stage) == inFlight(stage - 1);
    lines.push_back(isAsBefore ? lines.back() : linesOf(inFlight(stage)));
  }
  auto fits = [&](double step) { return isEnough(step, wait, own, lines); };
  if (fits(least))
    return least;
  double low = std::max(least, 1.0), high = low;
  constexpr int doublings = 10, halvings = 12;
  for (int round = 0; round < doublings && !fits(high); ++round)
    high = 2 * (low = high);
  for (int round = 0; round < halvings; ++round)
    (fits((low + high) / 2) ? high : low) = (low + high) / 2;
  return low;
}

} // namespace par
