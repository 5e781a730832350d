// Costs of degrees and samples that were not profiled, as low as those that were allow.
#include "par/Search/Profile.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace par {

static RankCost scaled(const RankCost &cost, int64_t times, int64_t parts) { return cost * times / parts; }

static ModelCost scaled(const ModelCost &cost, int64_t times, int64_t parts) {
  return {scaled(cost.rest, times, parts), scaled(cost.layer, times, parts), cost.layers};
}

/// The cost on so many times as many tensor ranks: all is dealt to them but the time of communication.
static RankCost dealt(const RankCost &cost, int64_t parts) {
  RankCost out = scaled(cost, 1, parts);
  int64_t both = cost.forward + cost.backward;
  if (both <= 0) // what is beside the layers, as a difference of two profiles
    return out;
  int64_t waits = std::max<int64_t>(0, both - cost.compute);
  double stays = static_cast<double>(cost.compute / parts + waits) / static_cast<double>(both);
  out.forward = static_cast<int64_t>(static_cast<double>(cost.forward) * stays);
  out.backward = static_cast<int64_t>(static_cast<double>(cost.backward) * stays);
  return out;
}

std::optional<ModelCost> Profiler::bySamples(int64_t tensor, int64_t rules, int64_t samples, bool sharded) const {
  std::vector<std::pair<int64_t, const ModelCost *>> below; // ascending
  for (const auto &[key, cost] : known) {
    auto [itsTensor, itsRules, itsSamples, itsSharded] = key;
    if (!cost || itsTensor != tensor || itsRules != rules || itsSharded != sharded)
      continue;
    if (itsSamples >= samples) // of the first such one: a sample takes no less beside fewer others
      return scaled(*cost, samples, itsSamples);
    below.push_back({itsSamples, &*cost});
  }
  if (below.size() < 2)
    return std::nullopt;
  auto [fewer, first] = below[below.size() - 2];
  auto [most, last] = below.back();
  auto beyond = [&, fewer = fewer, most = most](const RankCost &a, const RankCost &b) {
    return b + scaled(b + a * -1, samples - most, most - fewer);
  };
  return ModelCost{beyond(first->rest, last->rest), beyond(first->layer, last->layer), last->layers};
}

std::optional<ModelCost> Profiler::lowerCost(const Candidate &candidate) const {
  bool sharded = space.rounds && candidate.zero > 0;
  for (int64_t tensor = candidate.tensor; tensor >= 1; --tensor) { // the most ranks that say something
    if (candidate.tensor % tensor != 0)
      continue;
    int64_t rules = tensor > 1 ? candidate.rules() : 0;
    std::optional<ModelCost> cost = bySamples(tensor, rules, candidate.samples, sharded);
    if (!cost && !sharded && space.rounds)
      cost = bySamples(tensor, rules, candidate.samples, true);
    int64_t parts = candidate.tensor / tensor;
    if (cost)
      return parts == 1 ? *cost : ModelCost{dealt(cost->rest, parts), dealt(cost->layer, parts), cost->layers};
  }
  return std::nullopt;
}

} // namespace par
