// A lower bound of a candidate's step: each rank does its share of the local work in turn, the first microbatch must
// come to a stage and the last one leave it, and replicas exchange their gradients after the last backward at most.
#include "par/Search/Bound.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace par {

namespace {

/// One bound. Times are those of all stages together, in ns.
class Bound {
public:
  Bound(const Candidate &candidate, const ModelCost &cost, const Space &space, const Machine &machine)
      : candidate(candidate), cost(cost), space(space), machine(machine), all(cost.all()) {}

  bool isTooLarge(uint64_t limit) const;
  int64_t ns() const;

private:
  double microbatchNs() const;
  double waitingShare() const;
  double reductionNs() const;
  double gatherNs() const;
  bool shardsParams() const { return candidate.zero == 3 || (space.rounds && candidate.zero > 0); }

  const Candidate &candidate;
  const ModelCost &cost;
  const Space &space;
  const Machine &machine;
  const RankCost all;
};

} // namespace

/// Whether even an equal share of parameters, gradients and states is too large. Ranks of a stage share them too where
/// zero says so.
bool Bound::isTooLarge(uint64_t limit) const {
  int64_t share = candidate.data;
  int64_t bytes = (shardsParams() ? all.params / share : all.params) +
                  (candidate.zero >= 2 ? all.grads / share : all.grads) +
                  (candidate.zero >= 1 ? all.states / share : all.states);
  return bytes / candidate.stages > static_cast<int64_t>(limit);
}

/// A microbatch's time on all stages. Within a stage, communication of tensor axes that a profile does not hide delays
/// what follows; the last one of a block may run beside the next block, of another microbatch.
double Bound::microbatchNs() const {
  double work = static_cast<double>(std::max<int64_t>(0, all.compute));
  double waits = std::max(0.0, static_cast<double>(all.forward + all.backward) - work);
  if (candidate.stages == 1)
    return work + waits;
  double layers = std::max<double>(1, static_cast<double>(cost.layers / (candidate.stages * candidate.chunks)));
  return work + waits * (layers - 1) / layers;
}

/// The least share of a stage's microbatch for which each later stage must wait, before its first one and after its
/// last.
double Bound::waitingShare() const {
  if (candidate.chunks > 1)
    return 1.0 / static_cast<double>(candidate.chunks);
  if (candidate.schedule == "1f1b" || candidate.schedule.empty())
    return 1;
  double least = 1; // weight gradients may fill the end
  for (const RankCost &part : {cost.layer, cost.rest})
    if (int64_t both = part.forward + part.backward; both > 0)
      least = std::min(least, static_cast<double>(std::max<int64_t>(0, part.forward)) / static_cast<double>(both));
  return least;
}

/// One reduction of all gradients.
double Bound::reductionNs() const {
  using format::CollKind;
  if (candidate.data == 1 || !space.trains)
    return 0;
  const RankGroup &group = machine.replicas(candidate.data, candidate.tensor);
  int64_t grads = space.reducedBytes(all.grads ? all.grads : all.params);
  return static_cast<double>(candidate.zero == 0
                                 ? machine.costs.collective(CollKind::AllReduce, grads, group).ns
                                 : machine.costs.collective(CollKind::ReduceScatter, grads / candidate.data, group).ns);
}

/// One gather of all parameters.
double Bound::gatherNs() const {
  if (candidate.data == 1 || !space.trains || candidate.zero == 0)
    return 0;
  int64_t bytes = all.params / 2 / candidate.data;
  return static_cast<double>(
      machine.costs.collective(format::CollKind::AllGather, bytes, machine.replicas(candidate.data, candidate.tensor))
          .ns);
}

int64_t Bound::ns() const {
  double stages = static_cast<double>(candidate.stages), microbatches = static_cast<double>(candidate.microbatches);
  double each = microbatchNs(), share = waitingShare();
  double backward = static_cast<double>(std::max<int64_t>(0, all.backward));
  double update = static_cast<double>(std::max<int64_t>(0, all.update)) /
                  static_cast<double>(candidate.zero >= 1 ? candidate.data : 1);
  double reduction = reductionNs(), gather = gatherNs();
  // Stage i ends after `share` of what those before it take for one microbatch, and its own work for all: the least of
  // the largest such time, over all ways to deal the work, is where all are equal.
  double waiting = share > 0 ? each * share / (1 - std::pow(1 - share / microbatches, stages)) : 0;
  // Reductions begin with the last backward, unless each microbatch has its own. Beside compute they slow it.
  double reductions = candidate.zero >= 2 ? microbatches : 1, gathers = candidate.zero == 3 ? 2 * microbatches : 1;
  double exposed = candidate.zero >= 2 ? 0 : std::max(0.0, reduction - backward);
  const RankGroup &group = machine.replicas(candidate.data, candidate.tensor);
  double slowed = (reductions * reduction - exposed) * static_cast<double>(machine.costs.share(group)) / 1000;
  double tail = machine.hardware().overlap ? std::max(update, exposed) + slowed : update + reductions * reduction;
  double head = space.gathersFirst(candidate) ? gather : 0;
  double serial = (head + microbatches * each + tail) / stages;
  // Reductions follow each other on their queue, and gathers on theirs.
  double exchange = std::max(reductions * reduction, gathers * gather) / stages;
  return static_cast<int64_t>(std::max({waiting, serial, exchange}));
}

std::optional<int64_t> boundNs(const Candidate &candidate, const ModelCost &cost, const Space &space,
                               const Machine &machine, std::optional<uint64_t> limit) {
  Bound bound(candidate, cost, space, machine);
  if (limit && bound.isTooLarge(*limit))
    return std::nullopt;
  return bound.ns();
}

} // namespace par
