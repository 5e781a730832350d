// The bound is below every way to deal layers to the stages of a schedule, and counts what replicas exchange.
#include "par/Search/Bound.h"
#include "par/Search/Estimate.h"
#include "par/Solver/Order/OrderTable.h"

#include "gtest/gtest.h"

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
  candidate.zero = 2; // the exchange of two microbatches, 700,000 ns each
  EXPECT_EQ(bound(), 2 * 700'000);
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
