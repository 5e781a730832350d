// The bound is below every way to deal layers to the stages of a schedule, and counts what replicas exchange.
#include "par/Search/Bound.h"
#include "par/Search/Estimate.h"
#include "par/Solver/Order/OrderTable.h"
#include "par/Solver/Schedules/Schedules.h"

#include "gtest/gtest.h"

#include <map>
#include <random>

using namespace par;

namespace {

/// Layers and a rest of random times, and a pipeline of them without replicas.
struct RandomPipeline {
  Candidate candidate;
  ModelCost cost;

  explicit RandomPipeline(std::mt19937 &random) {
    auto partOf = [&](int64_t scale) {
      RankCost part;
      part.forward = 1 + random() % scale;
      part.backward = part.forward + random() % (2 * scale);
      part.compute = part.forward + part.backward;
      return part;
    };
    cost.layer = partOf(1000);
    cost.rest = partOf(3000);
    cost.layers = 4 + random() % 20;
    candidate.stages = 2 + random() % 3;
    candidate.microbatches = 1 + random() % 10;
    candidate.schedule = random() % 2 ? "1f1b" : "zb-h1";
  }

  /// The makespan where each stage takes a random number of layers, and one of them the rest.
  int64_t play(std::mt19937 &random) const {
    OrderTableProblem problem;
    problem.schedule = candidate.schedule;
    problem.stages = problem.devices = candidate.stages;
    problem.microbatches = candidate.microbatches;
    std::vector<int64_t> layers(candidate.stages, 0);
    for (int64_t layer = 0; layer < cost.layers; ++layer)
      ++layers[random() % layers.size()];
    size_t withRest = random() % layers.size();
    for (size_t stage = 0; stage < layers.size(); ++stage) {
      RankCost part = cost.layer * layers[stage];
      if (stage == withRest)
        part = part + cost.rest;
      bool apart = candidate.schedule == "zb-h1";
      problem.forward.push_back(part.forward);
      problem.weight.push_back(apart ? part.backward / 2 : 0);
      problem.backward.push_back(part.backward - problem.weight.back());
    }
    return llvm::cantFail(problem.solve()).makespan;
  }
};

/// Ranks of one host whose links carry 1 byte a ns.
Machine plainMachine() {
  Hardware hardware;
  hardware.overlap = true;
  hardware.link = 1000;
  return Machine(hardware);
}

} // namespace

TEST(Bound, IsBelowEveryDealing) {
  std::mt19937 random(1);
  double nearest = 1e9;
  for (int space = 0; space < 300; ++space) {
    RandomPipeline pipeline(random);
    Space all;
    int64_t bound = *boundNs(pipeline.candidate, pipeline.cost, all, plainMachine(), std::nullopt);
    for (int dealing = 0; dealing < 40; ++dealing) {
      int64_t played = pipeline.play(random);
      EXPECT_LE(bound, played) << describeCandidate(pipeline.candidate) << ", " << pipeline.cost.layers << " layers";
      nearest = std::min(nearest, double(played) / double(bound));
    }
  }
  EXPECT_LT(nearest, 1.02); // some dealing is even
}

namespace {

/// A pipeline of replicas, whose stages begin with a gather of their parameters and end with a reduction, which begins
/// with the last backward, and an update.
struct RandomReplicas : RandomPipeline {
  Space space;

  explicit RandomReplicas(std::mt19937 &random) : RandomPipeline(random) {
    for (RankCost *part : {&cost.layer, &cost.rest}) {
      part->params = part->grads = random() % 40'000;
      part->update = random() % 500;
    }
    candidate.data = 8;
    candidate.zero = random() % 2;
    space.rounds = true;
  }

  /// The step, played slot by slot in the order of the schedule, with a random dealing.
  int64_t play(std::mt19937 &random) const {
    std::vector<RankCost> stages(candidate.stages);
    for (int64_t layer = 0; layer < cost.layers; ++layer) {
      RankCost &stage = stages[random() % stages.size()];
      stage = stage + cost.layer;
    }
    RankCost &withRest = stages[random() % stages.size()];
    withRest = withRest + cost.rest;
    const Schedule *schedule = findSchedule(candidate.schedule);
    ScheduleShape shape{unsigned(candidate.stages), 1, unsigned(candidate.microbatches)};
    std::vector<DeviceSlots> slots;
    std::vector<int64_t> free, lastBackward(stages.size());
    for (unsigned device = 0; device < stages.size(); ++device) {
      slots.push_back(schedule->order(device, shape));
      free.push_back(candidate.zero ? nsOf(format::CollKind::AllGather, stages[device].params / 2 / 8) : 0);
    }
    std::map<std::tuple<int, unsigned, unsigned>, int64_t> ends; // by kind, stage and microbatch
    std::vector<size_t> next(stages.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (unsigned device = 0; device < stages.size(); ++device)
        while (next[device] < slots[device].size() && playOne(slots[device][next[device]], device, stages, ends, free,
                                                              lastBackward)) {
          ++next[device];
          moved = true;
        }
    }
    int64_t step = 0;
    for (unsigned device = 0; device < stages.size(); ++device) {
      EXPECT_EQ(next[device], slots[device].size());
      int64_t reduced = candidate.zero ? nsOf(format::CollKind::ReduceScatter, stages[device].grads / 8)
                                       : nsOf(format::CollKind::AllReduce, stages[device].grads);
      int64_t update = stages[device].update / (candidate.zero ? 8 : 1);
      step = std::max(step, std::max(free[device], lastBackward[device] + reduced) + update);
    }
    return step;
  }

private:
  static int64_t nsOf(format::CollKind kind, int64_t bytes) {
    Machine machine = plainMachine();
    return machine.costs.collective(kind, bytes, machine.replicas(8, 1)).ns;
  }
  /// False if the slot has to wait for another device's that was not played yet.
  bool playOne(const ScheduleSlot &slot, unsigned device, const std::vector<RankCost> &stages,
               std::map<std::tuple<int, unsigned, unsigned>, int64_t> &ends, std::vector<int64_t> &free,
               std::vector<int64_t> &lastBackward) const {
    bool apart = candidate.schedule == "zb-h1";
    int64_t weight = apart ? stages[device].backward / 2 : 0, time = weight, ready = 0;
    if (slot.kind != SlotKind::Weight) {
      bool forward = slot.kind == SlotKind::Forward;
      time = forward ? stages[device].forward : stages[device].backward - weight;
      bool waits = forward ? device > 0 : device + 1 < stages.size();
      if (waits) {
        auto other = ends.find({int(slot.kind), forward ? device - 1 : device + 1, slot.microbatch});
        if (other == ends.end())
          return false;
        ready = other->second;
      }
    }
    int64_t begin = std::max(ready, free[device]);
    free[device] = ends[{int(slot.kind), device, slot.microbatch}] = begin + time;
    if (slot.kind != SlotKind::Forward) // gradients are complete with the last weight gradient
      lastBackward[device] = begin;
    return true;
  }
};

} // namespace

/// 600 random spaces, 40 dealings each; the seed is 7.
TEST(Bound, IsBelowEveryDealingOfReplicas) {
  std::mt19937 random(7);
  double nearest = 1e9;
  for (int space = 0; space < 600; ++space) {
    RandomReplicas pipeline(random);
    int64_t bound = *boundNs(pipeline.candidate, pipeline.cost, pipeline.space, plainMachine(), std::nullopt);
    for (int dealing = 0; dealing < 40; ++dealing) {
      int64_t played = pipeline.play(random);
      EXPECT_LE(bound, played) << "space " << space << ": " << describeCandidate(pipeline.candidate);
      nearest = std::min(nearest, double(played) / double(bound));
    }
  }
  EXPECT_LT(nearest, 1.05); // some dealing is even
}

TEST(Bound, CountsExchangeAndUpdate) {
  ModelCost cost;
  cost.layer.forward = 1000;
  cost.layer.backward = 2000;
  cost.layer.compute = 3000;
  cost.layer.grads = cost.layer.params = 80'000;
  cost.layer.update = 500;
  cost.layers = 10;
  Candidate candidate;
  candidate.microbatches = 2;
  Space space;
  auto bound = [&] { return *boundNs(candidate, cost, space, plainMachine(), std::nullopt); };
  EXPECT_EQ(bound(), 2 * 30'000 + 5000);
  candidate.data = 8; // 800,000 bytes: 1,400,000 ns, of which the last backward hides 20,000
  EXPECT_EQ(bound(), 2 * 30'000 + 1'400'000 - 20'000);
  candidate.zero = 2; // the exchange of two microbatches, 700,000 ns each, after the first forward
  EXPECT_EQ(bound(), 10'000 + 2 * 700'000);
  candidate.zero = 3; // a gather for each forward and backward of two microbatches, 350,000 ns each
  cost.layer.grads = 8; // as if they were exchanged in no time
  EXPECT_EQ(bound(), 4 * 350'000);
  space.gathersOnce = true;
  EXPECT_EQ(bound(), 350'000);
  space.gathersOnce = false;
  cost.layer.grads = cost.layer.params;
  candidate.zero = 1;
  space.rounds = true; // the gather comes first
  EXPECT_EQ(bound(), 350'000 + 2 * 30'000 + 700'000 - 20'000);
  space.trains = false;
  EXPECT_EQ(bound(), 2 * 30'000 + 5000 / 8);
}

TEST(Bound, SaysWhatCannotFit) {
  ModelCost cost;
  cost.layer.params = 100;
  cost.layer.grads = 100;
  cost.layer.states = 200;
  cost.layers = 8;
  Candidate candidate;
  candidate.data = 4;
  candidate.stages = 2;
  auto fits = [&](uint64_t limit) { return boundNs(candidate, cost, {}, plainMachine(), limit).has_value(); };
  EXPECT_TRUE(fits(1600));
  EXPECT_FALSE(fits(1599));
  candidate.zero = 1;
  EXPECT_TRUE(fits(1000));
  EXPECT_FALSE(fits(999));
  candidate.zero = 3;
  EXPECT_TRUE(fits(400));
  EXPECT_FALSE(fits(399));
}
