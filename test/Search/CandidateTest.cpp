// Candidates as settings of a plan, and what they are estimated to need.
#include "par/Search/Estimate.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

using namespace par;

TEST(Candidate, ReplicasLieInsideOrOutsideOfStages) {
  Space space;
  space.ranks = 12;
  Candidate candidate{.data = 3, .tensor = 2, .stages = 2, .schedule = "1f1b", .microbatches = 4};
  space.shardings[2].push_back({"shard={}", false, false});
  EXPECT_EQ(space.settingsOf(candidate).front(), "mesh={pp: 2, dp: 3, tp: 2}");
  EXPECT_EQ(candidate.dataStride(), 2);
  candidate.dataOutside = true;
  EXPECT_EQ(space.settingsOf(candidate).front(), "mesh={dp: 3, pp: 2, tp: 2}");
  EXPECT_EQ(describeMesh(candidate), "dp 3 x pp 2 x tp 2");
  EXPECT_EQ(candidate.dataStride(), 4);
}

static std::vector<std::string> describeAll(const Space &space) {
  std::vector<std::string> all;
  for (const Candidate &candidate : space.candidates())
    all.push_back(describeCandidate(candidate));
  return all;
}

/// The batches of published runs are no powers of two: 8 ranks take 112 samples at once, or 768 in two microbatches.
TEST(Candidate, FewMicrobatchesTakeAnyNumberOfSamples) {
  Space space{.ranks = 8, .batch = 112};
  EXPECT_TRUE(llvm::is_contained(describeAll(space), "dp 8, 1 microbatch of 14"));
  EXPECT_TRUE(llvm::is_contained(describeAll(space), "dp 8, 7 microbatches of 2"));
  space.batch = 768;
  EXPECT_TRUE(llvm::is_contained(describeAll(space), "dp 8, 2 microbatches of 48"));
  EXPECT_TRUE(llvm::is_contained(describeAll(space), "dp 8, 6 microbatches of 16"));
  EXPECT_FALSE(llvm::is_contained(describeAll(space), "dp 8, 1 microbatch of 96"));
}

/// An embedding, two layers and a head: six stages of half a layer each, or fewer; with any number of microbatches a
/// rank may have two of them; zero 2 keeps no whole gradients in a step of one microbatch, too.
TEST(Candidate, StagesAreCutWithinLayers) {
  Space space{.ranks = 4, .batch = 4, .layers = 2};
  std::vector<std::string> all = describeAll(space);
  EXPECT_TRUE(llvm::is_contained(all, "pp 4, 1f1b, 1 microbatch of 4"));
  EXPECT_FALSE(llvm::is_contained(all, "pp 4, interleaved of 8 stages, 1 microbatch of 4"));
  EXPECT_TRUE(llvm::is_contained(all, "pp 2 x dp 2, interleaved of 4 stages, 1 microbatch of 2"));
  EXPECT_TRUE(llvm::is_contained(all, "dp 4, zero 2, 1 microbatch of 1"));
  space.layers = 1;
  EXPECT_TRUE(llvm::is_contained(describeAll(space), "pp 4, 1f1b, 1 microbatch of 4"));
  space.ranks = space.batch = 8;
  EXPECT_FALSE(llvm::is_contained(describeAll(space), "pp 8, 1f1b, 1 microbatch of 8"));
}

/// The user's zero is refused in a mesh without an axis that cuts the batch.
TEST(Candidate, AMeshHasReplicasWhereZeroIsSaid) {
  Space space{.ranks = 2};
  Candidate candidate{.stages = 2, .schedule = "1f1b"};
  EXPECT_EQ(space.settingsOf(candidate).front(), "mesh={pp: 2}");
  space.open.zero = false;
  space.fixed.zero = 2;
  EXPECT_EQ(space.settingsOf(candidate).front(), "mesh={pp: 2, dp: 1}");
}

TEST(Candidate, ReplicasOutsideOfStagesAreOnMoreHosts) {
  auto hardware = Hardware::parse("name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlink: 10\nlatency: 7\n"
                                  "launch: 3\nranks: 4\nbetween: {link: 2, latency: 11}\n",
                                  "x.yaml");
  ASSERT_TRUE(bool(hardware));
  Machine machine(*hardware);
  Candidate candidate{.data = 4, .stages = 4};
  EXPECT_EQ(machine.replicas(candidate).hosts, 1);
  candidate.dataOutside = true;
  EXPECT_EQ(machine.replicas(candidate).hosts, 4);
}

/// One stage of 10 layers, each of which saves 100 bytes and takes 2 and 4 ns.
static Estimate estimateOf(const Space &space, std::optional<uint64_t> limit) {
  auto hardware =
      Hardware::parse("name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlink: 10\nlatency: 7\nlaunch: 3\n", "x.yaml");
  Machine machine(*hardware);
  ModelCost cost;
  cost.layers = 10;
  cost.layer = {.forward = 2, .backward = 4, .params = 10, .saved = 100};
  return estimate({}, cost, space, machine, limit);
}

TEST(Estimate, RecomputesWhatHasNoRoom) {
  EXPECT_EQ(estimateOf({}, std::nullopt).peak, 1100);
  Estimate bounded = estimateOf({}, 650); // half of what is not an input
  EXPECT_TRUE(bounded.fits && bounded.recomputes);
  EXPECT_EQ(bounded.peak, 650);
  EXPECT_EQ(bounded.stepNs, 60 + 10);
  EXPECT_FALSE(estimateOf({}, 150).fits);
}

TEST(Estimate, DoesWhatThePlanSaysOfRecomputation) {
  Space never, always;
  never.keepsAll = true;
  EXPECT_FALSE(estimateOf(never, 650).fits);
  EXPECT_TRUE(estimateOf(never, 1100).fits);
  EXPECT_EQ(estimateOf(never, 650).stepNs, 60);
  always.keepsInputs = true;
  EXPECT_EQ(estimateOf(always, std::nullopt).peak, 200);
  EXPECT_EQ(estimateOf(always, std::nullopt).stepNs, 60 + 20);
}

/// Two of four layers are equal, and the rest is two layers and a head: a stage has a layer, and the last one the head.
TEST(Estimate, CutsBetweenLayersThatDiffer) {
  auto hardware =
      Hardware::parse("name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlink: 10\nlatency: 7\nlaunch: 3\n", "x.yaml");
  Machine machine(*hardware);
  ModelCost cost;
  cost.layers = 2;
  cost.layer = {.forward = 100, .backward = 200, .params = 10, .saved = 100};
  cost.rest = {.forward = 205, .backward = 410, .params = 25, .saved = 200};
  Candidate candidate{.stages = 4, .schedule = "1f1b", .microbatches = 4};
  Space space;
  auto stepOf = [&] { return estimate(candidate, cost, space, machine, std::nullopt).stepNs; };
  space.layers = 2;
  int64_t together = stepOf();
  space.layers = 4;
  EXPECT_EQ(stepOf(), 7 * 315); // 4 microbatches and 3 stages to fill
  EXPECT_EQ(together, 7 * 615);
}

/// Stages far back in zb-h1 wait with weight gradients for as many microbatches as the first one keeps, whose inputs
/// and gradients are gathered where forward keeps an eighth of the sequence. A pipeline of 405B was taken to fit that
/// needs 2.4 times its estimate.
TEST(Estimate, WeightGradientsThatWaitKeepGatheredValues) {
  auto hardware =
      Hardware::parse("name: x\npeak: {f32: 1000, f64: 500}\nmemory: 100\nlink: 10\nlatency: 7\nlaunch: 3\n", "x.yaml");
  Machine machine(*hardware);
  ModelCost cost;
  cost.layers = 4;
  cost.layer = {.forward = 100, .backward = 200, .params = 10, .saved = 100};
  Candidate candidate{.tensor = 8, .stages = 4, .sequence = true, .schedule = "1f1b", .microbatches = 4};
  auto figures = [&] { return estimate(candidate, cost, {}, machine, std::nullopt); };
  EXPECT_EQ(figures().peak, 410);
  EXPECT_EQ(figures().least, 10 + 40);
  candidate.schedule = "zb-h1";
  EXPECT_EQ(figures().peak, 10 + 4 * 233);
  EXPECT_EQ(figures().least, 10 + 4 * 233 / 2);
  candidate.sequence = false;
  EXPECT_EQ(figures().peak, 410);
}
