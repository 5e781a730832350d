// Composes a candidate of the costs of layers: the slowest stage, the schedule, the reduction, the fullest rank.
#include "par/Search/Estimate.h"

#include "par/Solver/Schedules/Schedules.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace llvm;

namespace par {

namespace {

/// A rank's part of the model: equal layers, and of the rest the share in 1/1000.
struct StagePart {
  int64_t layers = 0;
  RankCost cost;
};

/// A choice of what is recomputed.
struct FrontPoint {
  double share = 1; ///< of the bytes that forward would save, those that it does
  double ns = 0;    ///< that backward takes longer
};

int64_t timeOf(const RankCost &cost) { return cost.forward + cost.backward; }

/// The cost with the layers that are not equal to the others counted as such: a cut may lie between these, too. They
/// are of the rest as far as that is as much as they would be.
ModelCost withAllLayers(ModelCost cost, int64_t all) {
  while (cost.layers > 0 && cost.layers < all) {
    RankCost rest = cost.rest + cost.layer * -1;
    if (std::min({rest.forward, rest.backward, rest.params, rest.saved}) < 0)
      break;
    cost.rest = rest;
    ++cost.layers;
  }
  return cost;
}

/// One estimate.
class Estimator {
public:
  Estimator(const Candidate &candidate, const ModelCost &cost, const Space &space, const Machine &machine,
            std::optional<uint64_t> limit)
      : candidate(candidate), cost(withAllLayers(cost, space.layers)), space(space), machine(machine), limit(limit) {}

  Estimate make() const;

private:
  RankCost slowestStage() const;
  int64_t pipelineNs(const RankCost &stage) const;
  int64_t inFlight() const;
  int64_t reductionNs(const RankCost &stage) const;
  bool weightsApart() const;
  int64_t kept(const RankCost &stage) const;
  std::vector<FrontPoint> frontOf(const RankCost &part) const;
  bool roundsEachTime() const;
  /// Bytes that no recomputation saves.
  int64_t stays(const RankCost &stage) const;

  const Candidate &candidate;
  const ModelCost cost;
  const Space &space;
  const Machine &machine;
  const std::optional<uint64_t> limit; ///< bytes of a rank
};

} // namespace

/// The last stage has the head, so it takes fewer layers: the fewest by which no other stage is slower.
RankCost Estimator::slowestStage() const {
  int64_t stages = candidate.stages;
  if (stages == 1)
    return cost.all();
  if (cost.layers == 0) // its cuts are anywhere
    return cost.rest / stages;
  int64_t layer = std::max<int64_t>(1, timeOf(cost.layer)), least = INT64_MAX, chosen = 0;
  for (int64_t last = 0; last <= cost.layers; ++last) {
    int64_t others = (cost.layers - last + stages - 2) / (stages - 1);
    int64_t slowest = std::max(others * layer, timeOf(cost.rest) + last * layer);
    if (slowest < least) {
      least = slowest;
      chosen = others * layer >= timeOf(cost.rest) + last * layer ? others : -1 - last;
    }
  }
  RankCost rest = cost.rest;
  return chosen >= 0 ? cost.layer * chosen : rest + cost.layer * (-1 - chosen);
}

int64_t Estimator::pipelineNs(const RankCost &stage) const {
  int64_t busy = candidate.microbatches * timeOf(stage);
  if (candidate.stages == 1)
    return busy;
  ScheduleShape shape{static_cast<unsigned>(candidate.stages), static_cast<unsigned>(candidate.chunks),
                      static_cast<unsigned>(candidate.microbatches)};
  int64_t chunks = candidate.chunks;
  SlotTimes times{stage.forward / chunks, stage.backward / chunks, 0};
  const Schedule *schedule = findSchedule(candidate.schedule.empty() ? "1f1b" : candidate.schedule);
  if (schedule && schedule->weightsApart) {
    times.weight = times.backward / 2; // two matmuls for each one of forward
    times.backward -= times.weight;
  }
  std::optional<double> bubble;
  if (schedule && schedule->bubble)
    bubble = schedule->bubble(shape, times);
  if (!bubble)
    return busy + (candidate.stages - 1) * timeOf(stage) / chunks;
  return std::llround(static_cast<double>(busy) / (1 - std::min(*bubble, 0.99)));
}

/// Microbatches that the first stage keeps.
int64_t Estimator::inFlight() const {
  int64_t stages = candidate.stages;
  if (stages == 1)
    return 1;
  if (candidate.chunks > 1)
    return std::min(candidate.microbatches, stages + (stages - 1 + candidate.chunks - 1) / candidate.chunks);
  return std::min(candidate.microbatches, stages);
}

bool Estimator::weightsApart() const {
  const Schedule *schedule = candidate.stages > 1 ? findSchedule(candidate.schedule) : nullptr;
  return schedule && schedule->weightsApart;
}

/// Bytes of a microbatch on a stage. If weight gradients come later, stages far back have as many microbatches as the
/// first one, of which they keep matmuls' inputs and gradients of their outputs. These are gathered even if forward
/// keeps only a part of the sequence: of a layer of Llama's on 8 tensor ranks 2.3 times as much, on 4 of them 1.7.
int64_t Estimator::kept(const RankCost &stage) const {
  return weightsApart() && candidate.sequence ? stage.saved * (candidate.tensor + 6) / 6 : stage.saved;
}

/// ns of collectives over replicas that nothing hides.
int64_t Estimator::reductionNs(const RankCost &stage) const {
  if (candidate.data == 1 || !space.trains)
    return 0;
  using format::CollKind;
  const RankGroup &group = machine.replicas(candidate);
  int64_t share = candidate.data, grads = space.reducedBytes(stage.grads ? stage.grads : stage.params);
  int64_t parts = std::max<int64_t>(1, cost.layers / candidate.stages) + 1; // a collective for each layer
  auto of = [&](CollKind kind, int64_t bytes) { return parts * machine.collectiveNs(kind, bytes / parts, candidate); };
  int64_t reduce = candidate.zero == 0 ? of(CollKind::AllReduce, grads) : of(CollKind::ReduceScatter, grads / share);
  int64_t gather = candidate.zero == 0 ? 0 : of(CollKind::AllGather, stage.params / 2 / share);
  // Beside compute it slows that.
  auto exposed = [&](int64_t ns, int64_t beside) {
    if (!machine.hardware().overlap || !space.overlaps)
      return ns;
    int64_t rest = std::max(ns - beside, ns / parts);
    return rest + (ns - rest) * machine.costs.share(group) / 1000;
  };
  int64_t times = candidate.zero >= 2 ? candidate.microbatches : 1;
  int64_t exchange = times * exposed(reduce, stage.backward);
  if (space.gathersFirst(candidate))
    return exchange + gather;
  if (space.gathersOnce)
    return exchange + exposed(gather, stage.forward);
  int64_t gathers = candidate.zero == 3 ? candidate.microbatches : 1;
  return exchange + gathers * exposed(gather, stage.forward) +
         (candidate.zero == 3 ? gathers * exposed(gather, stage.backward) : 0);
}

/// Whether each microbatch rounds whole masters again: if once, a stage would keep more than Split lets it.
bool Estimator::roundsEachTime() const {
  constexpr int64_t keptPart = 16; // of the memory
  int64_t rounded = 2 * (sum_of(space.weights, int64_t(0)) + space.smallElements) / candidate.stages;
  return space.rounds && limit && candidate.zero == 0 && rounded > static_cast<int64_t>(*limit) / keptPart;
}

int64_t Estimator::stays(const RankCost &stage) const {
  int64_t share = candidate.data;
  int64_t params = space.shardsParams(candidate) ? stage.params / share : stage.params;
  int64_t grads = candidate.zero >= 2 ? stage.grads / share : stage.grads;
  int64_t states = candidate.zero >= 1 ? stage.states / share : stage.states;
  int64_t gathered = candidate.zero < 3 ? 0 : space.gathersOnce ? stage.params : 2 * cost.layer.params;
  int64_t buffers = stage.buffers; // with the rounded parameters
  if ((space.rounds && candidate.zero == 3) || roundsEachTime())
    buffers -= stage.params / 2;
  return params + grads + states + gathered + std::max<int64_t>(0, buffers);
}

/// From all that is saved to as little as may be: a tenth of what a layer saves is its input, which stays; so do
/// gradients that wait for their weights'. Without the front of a profile each byte costs alike.
std::vector<FrontPoint> Estimator::frontOf(const RankCost &part) const {
  double stay = weightsApart() ? 0.5 : 0.1;
  std::vector<FrontPoint> front(1);
  if (space.keepsAll)
    return front;
  if (part.kept.empty() || part.kept.front() <= 0) {
    front.push_back({stay, static_cast<double>(part.forward)});
    return front;
  }
  double all = static_cast<double>(part.kept.front());
  for (auto [kept, again] : llvm::drop_begin(llvm::zip(part.kept, part.again))) {
    const FrontPoint &last = front.back(); // differences of two profiles may not be in order
    front.push_back(
        {std::clamp(static_cast<double>(kept) / all, stay, last.share), std::max(static_cast<double>(again), last.ns)});
  }
  return front;
}

/// The place in a front, between two points, that keeps at most so much.
static double placeOf(llvm::ArrayRef<FrontPoint> front, double share) {
  for (size_t next = 1; next < front.size(); ++next)
    if (double above = front[next - 1].share, below = front[next].share; below <= share)
      return share >= above ? static_cast<double>(next - 1)
                            : static_cast<double>(next) - (share - below) / (above - below);
  return share >= front.back().share ? 0 : static_cast<double>(front.size() - 1);
}

/// The point at a place between two points.
static FrontPoint at(llvm::ArrayRef<FrontPoint> front, double place) {
  auto before = std::min(static_cast<size_t>(place), front.size() - 1), after = std::min(before + 1, front.size() - 1);
  double part = place - static_cast<double>(before);
  return {front[before].share + part * (front[after].share - front[before].share),
          front[before].ns + part * (front[after].ns - front[before].ns)};
}

Estimate Estimator::make() const {
  RankCost slowest = slowestStage();
  // The first stage keeps most microbatches; it is charged the tables of the rest too.
  bool isDealt = candidate.stages > 1 && cost.layers > 0;
  RankCost fullest = isDealt ? cost.layer * ((cost.layers + candidate.stages - 1) / candidate.stages) : slowest;
  if (isDealt) {
    fullest.params += cost.rest.params;
    fullest.grads += cost.rest.grads;
    fullest.states += cost.rest.states;
    fullest.buffers += std::max<int64_t>(0, cost.rest.buffers);
  }
  int64_t fixed = stays(fullest), saved = kept(fullest) * inFlight();
  auto bytesWith = [&](double share) { return fixed + std::llround(static_cast<double>(saved) * share); };
  std::vector<FrontPoint> front = frontOf(fullest);
  Estimate out;
  out.least = bytesWith(front.back().share);
  int64_t room = limit ? static_cast<int64_t>(*limit) : INT64_MAX;
  double place = placeOf(front, saved > 0 ? static_cast<double>(room - fixed) / static_cast<double>(saved) : 1);
  if (space.keepsInputs)
    place = static_cast<double>(front.size() - 1);
  out.peak = bytesWith(at(front, place).share);
  out.recomputes = place > 0;
  out.fits = out.least <= room;
  slowest.backward += std::llround(at(frontOf(slowest), place).ns);
  int64_t update = slowest.update / (candidate.zero >= 1 ? candidate.data : 1);
  if (roundsEachTime()) // the profile has it in the update
    update += (candidate.microbatches - 1) * machine.costs.kernel(slowest.params + slowest.params / 2).ns;
  out.stepNs = pipelineNs(slowest) + reductionNs(slowest) + update;
  return out;
}

Estimate estimate(const Candidate &candidate, const ModelCost &cost, const Space &space, const Machine &machine,
                  std::optional<uint64_t> limit) {
  return Estimator(candidate, cost, space, machine, limit).make();
}

} // namespace par
