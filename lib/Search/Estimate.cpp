// Composes a candidate of the costs of layers: the slowest stage, the schedule, the reduction, the fullest rank.
#include "par/Search/Estimate.h"

#include "par/Costs/CostTable.h"
#include "par/Solver/Schedules/Schedules.h"

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

/// One estimate.
class Estimator {
public:
  Estimator(const Candidate &candidate, const ModelCost &cost, const Space &space, const Hardware &hardware)
      : candidate(candidate), cost(cost), space(space), hardware(hardware), costs(hardware) {}

  Estimate make(std::optional<uint64_t> limit) const;

private:
  RankCost slowestStage() const;
  int64_t pipelineNs(const RankCost &stage) const;
  int64_t inFlight() const;
  RankGroup replicas() const;
  int64_t reductionNs(const RankCost &stage) const;
  /// Bytes that no recomputation saves.
  int64_t stays(const RankCost &stage) const;

  const Candidate &candidate;
  const ModelCost &cost;
  const Space &space;
  const Hardware &hardware;
  CostTable costs;
};

} // namespace

static int64_t timeOf(const RankCost &cost) { return cost.forward + cost.backward; }

/// The last stage has the head, so it takes fewer layers: the fewest by which no other stage is slower.
RankCost Estimator::slowestStage() const {
  int64_t stages = candidate.stages;
  if (stages == 1)
    return cost.all();
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

/// Ranks that hold the same part of the model: the tensor axis lies within.
RankGroup Estimator::replicas() const {
  std::vector<int64_t> ranks;
  for (int64_t replica = 0; replica < candidate.data; ++replica)
    ranks.push_back(replica * candidate.tensor);
  return hardware.groupOf(ranks);
}

/// ns of collectives over replicas that nothing hides.
int64_t Estimator::reductionNs(const RankCost &stage) const {
  if (candidate.data == 1 || !space.trains)
    return 0;
  using format::CollKind;
  RankGroup group = replicas();
  int64_t share = candidate.data, grads = stage.grads ? stage.grads : stage.params;
  int64_t reduce = candidate.zero == 0 ? costs.collective(CollKind::AllReduce, grads, group).ns
                                       : costs.collective(CollKind::ReduceScatter, grads / share, group).ns;
  int64_t gather = candidate.zero == 0 ? 0 : costs.collective(CollKind::AllGather, stage.params / 2 / share, group).ns;
  int64_t parts = std::max<int64_t>(1, cost.layers / candidate.stages) + 1;
  auto exposed = [&](int64_t ns, int64_t beside) { return hardware.overlap ? std::max(ns - beside, ns / parts) : ns; };
  int64_t times = candidate.zero >= 2 ? candidate.microbatches : 1;
  int64_t gathers = candidate.zero == 3 ? candidate.microbatches : 1;
  return times * exposed(reduce, stage.backward) + gathers * exposed(gather, stage.forward) +
         (candidate.zero == 3 ? gathers * exposed(gather, stage.backward) : 0);
}

int64_t Estimator::stays(const RankCost &stage) const {
  int64_t share = candidate.data;
  bool sharded = candidate.zero == 3 || (space.rounds && candidate.zero > 0);
  int64_t params = sharded ? stage.params / share : stage.params;
  int64_t grads = candidate.zero >= 2 ? stage.grads / share : stage.grads;
  int64_t states = candidate.zero >= 1 ? stage.states / share : stage.states;
  int64_t gathered = candidate.zero == 3 ? 2 * cost.layer.params : 0;
  int64_t buffers = stage.buffers - (space.rounds && candidate.zero == 3 ? stage.params / 2 : 0); // the rounded ones
  return params + grads + states + gathered + std::max<int64_t>(0, buffers);
}

Estimate Estimator::make(std::optional<uint64_t> limit) const {
  RankCost slowest = slowestStage();
  // The first stage keeps most microbatches; it is charged the tables of the rest too.
  RankCost fullest =
      candidate.stages == 1 ? slowest : cost.layer * ((cost.layers + candidate.stages - 1) / candidate.stages);
  if (candidate.stages > 1) {
    fullest.params += cost.rest.params;
    fullest.grads += cost.rest.grads;
    fullest.states += cost.rest.states;
    fullest.buffers += std::max<int64_t>(0, cost.rest.buffers);
  }
  int64_t fixed = stays(fullest), saved = fullest.saved * inFlight();
  Estimate out;
  // A tenth of what a layer saves is its input, which stays.
  int64_t least = fixed + saved / 10;
  int64_t room = limit ? static_cast<int64_t>(*limit) : INT64_MAX;
  int64_t again = std::max<int64_t>(0, std::min(fixed + saved - room, saved - saved / 10));
  out.peak = fixed + saved - again;
  out.recomputes = again > 0;
  out.fits = least <= room;
  if (saved > 0 && again > 0)
    slowest.backward += static_cast<int64_t>(static_cast<double>(slowest.forward) * again / (saved - saved / 10));
  int64_t update = slowest.update / (candidate.zero >= 1 ? candidate.data : 1);
  out.stepNs = pipelineNs(slowest) + reductionNs(slowest) + update;
  return out;
}

Estimate estimate(const Candidate &candidate, const ModelCost &cost, const Space &space, const Hardware &hardware,
                  std::optional<uint64_t> limit) {
  return Estimator(candidate, cost, space, hardware).make(limit);
}

int64_t boundNs(const Candidate &candidate, const ModelCost &cost) {
  double work = static_cast<double>(std::max<int64_t>(0, cost.all().compute));
  double microbatches = static_cast<double>(candidate.microbatches);
  bool waits = candidate.chunks == 1 && (candidate.schedule == "1f1b" || candidate.schedule.empty());
  // Stage i ends after what the ones before it take for one microbatch, and its own work for all: the least of the
  // largest such time, over all ways to deal the work, is where all are equal.
  double dealt = waits ? 1 - std::pow(1 - 1 / microbatches, static_cast<double>(candidate.stages))
                       : static_cast<double>(candidate.stages) / microbatches;
  return static_cast<int64_t>(work / dealt);
}

} // namespace par
