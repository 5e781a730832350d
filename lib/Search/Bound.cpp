// A lower bound of a candidate's step: each rank does its share of the local work in turn, the first microbatch must
// come to a stage and the last one leave it, and replicas exchange their gradients after the last backward at most.
#include "par/Search/Bound.h"

#include "MemoryBound.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace par {

namespace {

/// One bound. Times are those of all stages together, in ns.
class Bound {
public:
  Bound(const Candidate &candidate, const ModelCost &cost, const Space &space, const Machine &machine,
        std::optional<uint64_t> limit)
      : candidate(candidate), cost(cost), space(space), machine(machine), all(cost.all()),
        grads(all.grads ? all.grads : all.params) {
    if (limit)
      memory.emplace(candidate, cost, space, static_cast<int64_t>(*limit));
  }

  int64_t ns() const;

private:
  double waitingNs() const;
  double serialNs() const;
  double exchangeNs() const;
  double microbatchNs() const { return static_cast<double>(all.forward + all.backward) - hiddenNs() - addedNs(); }
  double addedNs() const;
  double hiddenNs() const;
  double waitingShare() const;
  /// A time is that of the whole model, or of any part of it, which takes at least its share by bytes of the time.
  enum class Part { Whole, Any };
  double collectivesNs(format::CollKind kind, int64_t bytes, int64_t elementBytes, Part part) const;
  double reductionNs(int64_t gradients, Part part) const;
  double gatherNs(int64_t params, Part part) const;
  double exposedNs(const RankCost &part, double reduction) const;
  bool gathersEachUse() const { return candidate.zero == 3 && !space.gathersOnce; }
  int64_t backwardParams() const;
  double gatherAgainNs() const { return gathersEachUse() ? gatherNs(backwardParams(), Part::Any) : 0; }
  double blocksNs() const;
  double inTheWayNs(const RankCost &part) const;
  /// Whether collectives of replicas run beside compute.
  bool overlaps() const { return machine.hardware().overlap && space.overlaps; }

  const Candidate &candidate;
  const ModelCost &cost;
  const Space &space;
  const Machine &machine;
  const RankCost all;
  const int64_t grads; ///< bytes of all gradients
  std::optional<MemoryBound> memory;
};

} // namespace

static double updateNs(const RankCost &part, const Candidate &candidate) {
  return static_cast<double>(std::max<int64_t>(0, part.update)) /
         static_cast<double>(candidate.zero >= 1 ? candidate.data : 1);
}

/// The part of a microbatch's time on all stages that may be hidden. Within a stage, communication of tensor axes that
/// a profile does not hide delays the ops after it; the last one of a block may run beside the next block, of another
/// microbatch.
double Bound::hiddenNs() const {
  if (candidate.stages == 1)
    return 0;
  double waits =
      std::max<double>(0, static_cast<double>(all.forward + all.backward - std::max<int64_t>(0, all.compute)));
  return waits / std::max<double>(1, static_cast<double>(cost.layers / (candidate.stages * candidate.chunks)));
}

/// Time that a profile, which has two microbatches, takes to add up gradients: the backward of a single one does not.
double Bound::addedNs() const {
  if (candidate.microbatches > 1 || !space.trains)
    return 0;
  constexpr int64_t touches = 3; // two are read and one is written
  return static_cast<double>(machine.costs.kernel(touches * grads).ns + space.trained * machine.costs.kernel(0).ns);
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

/// Collectives that move so many bytes of a rank, as few as buckets allow. By links and latencies each takes a latency
/// and its bytes' time, however they are split. Measured rows may make any split the fastest, so that nothing is known.
double Bound::collectivesNs(format::CollKind kind, int64_t bytes, int64_t elementBytes, Part part) const {
  if (machine.isMeasured(kind, candidate))
    return 0;
  double count = static_cast<double>(space.collectivesOf(elementBytes, candidate.tensor));
  if (part == Part::Any) { // one with the largest messages has the fewest
    int64_t whole = kind == format::CollKind::AllReduce ? bytes : bytes * candidate.data;
    count = static_cast<double>(whole) / static_cast<double>(space.maxMessage());
  }
  return static_cast<double>(machine.collectiveNs(kind, bytes, candidate)) +
         (count - 1) * static_cast<double>(machine.collectiveLatency(kind, candidate));
}

/// The part of so many bytes of all parameters that zero shards: small ones stay whole, and shards are padded.
static int64_t shardedOf(int64_t bytes, const Candidate &candidate, const Space &space) {
  constexpr int64_t widest = sizeof(double), alignment = 256;
  int64_t aligned = alignment * candidate.data * static_cast<int64_t>(space.weights.size());
  return std::max<int64_t>(0, bytes - widest * space.smallElements - aligned);
}

/// One reduction of so many bytes of gradients: all, or of each microbatch those that zero shards.
double Bound::reductionNs(int64_t gradients, Part part) const {
  using format::CollKind;
  if (candidate.data == 1 || !space.trains)
    return 0;
  int64_t bytes = space.reducedBytes(gradients);
  return candidate.zero == 0 ? collectivesNs(CollKind::AllReduce, bytes, space.weightBytes, part)
                             : collectivesNs(CollKind::ReduceScatter, bytes / candidate.data, space.weightBytes, part);
}

/// One gather of parameters that have so many bytes before they are rounded.
double Bound::gatherNs(int64_t params, Part part) const {
  if (candidate.data == 1 || !space.trains || candidate.zero == 0)
    return 0;
  int64_t gathered = std::min(params, shardedOf(all.params, candidate, space));
  return collectivesNs(format::CollKind::AllGather, gathered / 2 / candidate.data, /*elementBytes=*/2, part);
}

/// Bytes of parameters that backward reads again: matrices of the equal layers. It reads no tables, biases and scales,
/// and those outside of the layers may be such.
int64_t Bound::backwardParams() const {
  constexpr int64_t widest = sizeof(double);
  return std::max<int64_t>(0, cost.layer.params * cost.layers - widest * space.vectorElements);
}

/// The rest of the last reduction of a part's gradients after its last backward, with which it begins.
double Bound::exposedNs(const RankCost &part, double reduction) const {
  int64_t own = all.grads ? part.grads : part.params;
  double share = grads > 0 ? static_cast<double>(own) / static_cast<double>(grads) : 0;
  double hidden = overlaps() ? static_cast<double>(part.backward) : 0;
  return (reduction * share - hidden) / static_cast<double>(candidate.chunks);
}

/// Time that a part's collectives of replicas add to each microbatch if none runs beside compute.
double Bound::inTheWayNs(const RankCost &part) const {
  if (overlaps())
    return 0;
  double ns = 0, chunks = static_cast<double>(candidate.chunks);
  if (candidate.zero >= 2)
    ns += std::max(0.0, exposedNs(part, reductionNs(shardedOf(grads, candidate, space), Part::Any))) * chunks;
  if (gathersEachUse() && all.params > 0)
    ns += gatherNs(all.params, Part::Any) * static_cast<double>(part.params) / static_cast<double>(all.params);
  return ns;
}

/// A time, which is a sum over parts of the model, of a stage with all work and the parts that have least of it.
static double minPerWork(const ModelCost &cost, function_ref<double(const RankCost &)> time) {
  double least = std::numeric_limits<double>::infinity();
  RankCost all = cost.all();
  double work = static_cast<double>(all.forward + all.backward);
  for (const RankCost &part : {cost.layer, cost.rest})
    if (int64_t own = part.forward + part.backward; own > 0)
      least = std::min(least, time(part) * work / static_cast<double>(own));
  return std::isfinite(least) ? std::max(0.0, least) : 0;
}

/// The least time of the stages, over all ways to deal the work: each must wait for a share of the work of those before
/// it, for what the first of them does before and after all, and does its own. That is where all end at once.
///
///     T = (first + own) x0,   T = first x0 + wait (x0 + ... + x(i-1)) + own xi,   x0 + x1 + ... = 1
///
/// If `first` is so much that the first stage had better do nothing, it counts as less.
static double chainNs(double first, double wait, double own, int64_t stages) {
  if (wait <= 0)
    return 0;
  double left = std::pow(1 - wait / own, stages - 1); // of a time, in which the later stages do their work
  if (stages > 1)
    first = std::min(first, wait * left / (1 - left));
  return (first + own) / (1 + (own - wait) / wait * (1 - left));
}

/// The first microbatch comes to a stage through those before, and the last one leaves through them.
double Bound::waitingNs() const {
  double microbatches = static_cast<double>(candidate.microbatches), each = microbatchNs();
  if (each <= 0)
    return 0;
  double gather = space.gathersFirst(candidate) ? gatherNs(all.params, Part::Any) : 0;
  double head = minPerWork(cost, [&](const RankCost &part) {
    return gather * static_cast<double>(part.params) / std::max(1.0, static_cast<double>(all.params)) /
           static_cast<double>(candidate.chunks);
  });
  double tail = minPerWork(cost, [&](const RankCost &part) { return updateNs(part, candidate); });
  double exposed =
      minPerWork(cost, [&](const RankCost &part) { return exposedNs(part, reductionNs(grads, Part::Any)); });
  if (overlaps())
    tail = std::max(tail, exposed);
  else if (candidate.zero < 2) // else each microbatch has its own
    tail += exposed;
  // The last backward of the first stage comes after those of the others, unless weight gradients come later.
  bool drains = candidate.chunks == 1 && (candidate.schedule.empty() || candidate.schedule == "1f1b");
  double own = microbatches * (each + minPerWork(cost, [&](const RankCost &part) { return inTheWayNs(part); }));
  double wait = each * waitingShare();
  double least = chainNs(head + (drains ? tail : 0), wait, own + (drains ? 0 : tail), candidate.stages);
  return memory ? memory->chainNs(wait, own, least) : least;
}

/// The microbatches' forwards and backwards, on all stages together: each begins its own gathers and ends after them.
double Bound::blocksNs() const {
  double again = memory ? memory->wholeNs() : 0;
  double forward = static_cast<double>(all.forward), backward = static_cast<double>(all.backward) - addedNs() + again;
  double longest = microbatchNs() + again;
  if (gathersEachUse()) {
    double gather = gatherNs(all.params, Part::Whole), second = gatherAgainNs();
    if (overlaps())
      longest = std::max(longest, std::max(forward - hiddenNs(), gather) + std::max(backward - hiddenNs(), second));
    else
      longest += gather + second;
  }
  if (!overlaps() && candidate.zero >= 2)
    longest += reductionNs(shardedOf(grads, candidate, space), Part::Whole);
  return static_cast<double>(candidate.microbatches) * longest;
}

/// Each rank's own work, the mean over stages. That communication beside kernels slows them is left out: the player
/// charges a kernel only for what had begun before it, and of that only for what ends last.
double Bound::serialNs() const {
  double reduction = reductionNs(grads, Part::Whole), tail = updateNs(all, candidate);
  double gather = gathersEachUse() ? 0 : gatherNs(all.params, Part::Whole), head = 0;
  if (space.gathersFirst(candidate))
    head = gather / static_cast<double>(candidate.chunks);
  double again = memory ? memory->wholeNs() : 0;
  if (overlaps()) // a backward that waits for its gathers, or recomputes, hides more
    tail = std::max(tail,
                    exposedNs(all, reduction - std::max(again, gatherAgainNs() - static_cast<double>(all.backward))));
  else
    tail += (candidate.zero < 2 ? reduction : 0) + (space.gathersFirst(candidate) ? 0 : gather);
  return (head + blocksNs() + tail) / static_cast<double>(candidate.stages);
}

/// Reductions follow each other on their queue, those of each microbatch after the first forward; gathers on theirs.
/// Both queues may be busy at once, so the longer one counts.
double Bound::exchangeNs() const {
  double reductions = reductionNs(grads, Part::Whole), microbatches = static_cast<double>(candidate.microbatches);
  if (candidate.zero >= 2 && candidate.data > 1 && space.trains)
    reductions = reductionNs(shardedOf(grads, candidate, space), Part::Whole) * microbatches +
                 static_cast<double>(std::max<int64_t>(0, all.forward));
  double gathers = gatherNs(all.params, Part::Whole);
  if (gathersEachUse())
    gathers = microbatches * (gathers + gatherAgainNs());
  return std::max(reductions, gathers) / static_cast<double>(candidate.stages);
}

int64_t Bound::ns() const { return static_cast<int64_t>(std::max({waitingNs(), serialNs(), exchangeNs()})); }

/// Whether even an equal share of parameters, gradients and states is too large. Ranks of a stage share them too where
/// zero says so.
static bool isTooLarge(const Candidate &candidate, const RankCost &all, const Space &space, uint64_t limit) {
  int64_t share = candidate.data;
  int64_t bytes = (space.shardsParams(candidate) ? all.params / share : all.params) +
                  (candidate.zero >= 2 ? all.grads / share : all.grads);
  if (!candidate.offloads)
    bytes += candidate.zero >= 1 ? all.states / share : all.states;
  return bytes / candidate.stages > static_cast<int64_t>(limit);
}

std::optional<int64_t> boundNs(const Candidate &candidate, const ModelCost &cost, const Space &space,
                               const Machine &machine, std::optional<uint64_t> limit) {
  if (limit && isTooLarge(candidate, cost.all(), space, *limit))
    return std::nullopt;
  return Bound(candidate, cost, space, machine, limit).ns();
}

} // namespace par
