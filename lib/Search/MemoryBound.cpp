// Lower bounds of recomputation by the front of a profile, as lines under it.
#include "MemoryBound.h"

#include <algorithm>
#include <limits>

namespace par {

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
  return space.trains && space.open.recompute && space.open.offload && !cost.all().prices.empty();
}

/// Bytes that a rank with such a part of the model holds beside what it saves. Gradients are there once a backward has
/// begun before; of rounded parameters those that backward reads again.
double MemoryBound::stays(const RankCost &part, int64_t held) const {
  bool shardsParams = candidate.zero == 3 || (space.rounds && candidate.zero > 0);
  auto data = static_cast<double>(candidate.data);
  double bytes = static_cast<double>(part.params) / (shardsParams ? data : 1);
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
  const RankCost all = cost.all();
  double most = 0;
  for (size_t price = 0; price < all.prices.size(); ++price)
    most = std::max(most, priced(all, price, 1) - all.prices[price] * limit);
  return most * localShare(all);
}

/// The largest share of the model that a stage can have in so much time.
double MemoryBound::shareWithin(int64_t stage, double room, double own) const {
  const RankCost all = cost.all();
  auto microbatches = static_cast<double>(candidate.microbatches),
       work = static_cast<double>(all.forward + all.backward);
  int64_t held = inFlight(stage);
  double share = room / own, local = localShare(all);
  for (size_t price = 1; price < all.prices.size(); ++price) {
    double least = std::numeric_limits<double>::infinity(); // a stage has the parts that need least for their work
    for (const RankCost &part : {cost.layer, cost.rest})
      if (int64_t ownWork = part.forward + part.backward; ownWork > 0 && price < part.prices.size())
        least = std::min(least, priced(part, price, held) * work / static_cast<double>(ownWork));
    double off = all.prices[price] * limit / static_cast<double>(held);
    if (least > 0 && least < std::numeric_limits<double>::infinity())
      share = std::min(share, (room + local * microbatches * off) / (own + local * microbatches * least));
  }
  return share;
}

bool MemoryBound::isEnough(double step, double wait, double own) const {
  double dealt = 0;
  for (int64_t stage = 0; stage < candidate.stages && dealt < 1; ++stage)
    dealt += std::max(0.0, shareWithin(stage, step - wait * dealt, own));
  return dealt >= 1;
}

double MemoryBound::chainNs(double wait, double own, double least) const {
  if (!binds() || candidate.stages == 1 || own <= 0 || isEnough(least, wait, own))
    return least;
  double low = std::max(least, 1.0), high = low;
  constexpr int doublings = 10, halvings = 12;
  for (int round = 0; round < doublings && !isEnough(high, wait, own); ++round)
    high = 2 * (low = high);
  for (int round = 0; round < halvings; ++round)
    (isEnough((low + high) / 2, wait, own) ? high : low) = (low + high) / 2;
  return low;
}

} // namespace par
