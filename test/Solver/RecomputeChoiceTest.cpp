#include "par/Solver/Recompute/RecomputeChoice.h"
#include <gtest/gtest.h>
#include <random>

using namespace par;

static RecomputeProblem randomChoice(std::mt19937 &random) {
  auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  RecomputeProblem problem;
  unsigned count = 4 + below(8);
  int64_t all = 0;
  for (unsigned i = 0; i < count; ++i) {
    ForwardValue value{"v" + std::to_string(i), below(50), 1 + below(20), {}, below(2) == 0, false};
    for (unsigned inputs = i == 0 ? 0 : below(4); inputs > 0; --inputs)
      value.inputs.push_back(below(i));
    value.isAvailable = value.inputs.empty() && below(2) == 0;
    all += value.needed && !value.isAvailable ? value.bytes : 0;
    problem.values.push_back(value);
  }
  problem.budget = all * (2 + below(8)) / 10;
  return problem;
}

// 1,000 random DAGs: a choice is found exactly if there is one, lies between bound and optimum, and mostly is
// it.
TEST(RecomputeChoice, AgainstExhaustiveSearch) {
  std::mt19937 random(1);
  unsigned optimal = 0, feasible = 0;
  for (unsigned trial = 0; trial < 1000; ++trial) {
    RecomputeProblem problem = randomChoice(random);
    int64_t best = problem.solveExhaustively();
    auto choice = problem.solve();
    ASSERT_EQ(bool(choice), best >= 0) << "trial " << trial;
    if (!choice) {
      llvm::consumeError(choice.takeError());
      continue;
    }
    ASSERT_EQ(llvm::toString(problem.verify(*choice)), "") << "trial " << trial;
    ASSERT_LE(choice->minCost, best) << "trial " << trial;
    ASSERT_LE(best, choice->cost) << "trial " << trial;
    ++feasible;
    optimal += choice->cost == best;
  }
  EXPECT_GT(feasible, 500u);
  EXPECT_GE(optimal * 100, feasible * 90);
}

// A chain of 400 equal values at half of its bytes: the bound is met to within one value.
TEST(RecomputeChoice, LongChains) {
  RecomputeProblem problem;
  for (unsigned i = 0; i < 400; ++i)
    problem.values.push_back({"v", 10, 100, i == 0 ? std::vector<unsigned>{} : std::vector{i - 1}, true, false});
  problem.budget = 100 * 200 + 50;
  auto choice = problem.solve();
  ASSERT_TRUE(bool(choice));
  EXPECT_EQ(llvm::toString(problem.verify(*choice)), "");
  EXPECT_LE(choice->cost, choice->minCost + 10);
}

TEST(RecomputeChoice, VerifyRefusesWrongChoices) {
  RecomputeProblem problem;
  problem.budget = 25;
  problem.values = {{"x", 0, 10, {}, false, false}, {"y", 5, 20, {0}, true, false}};
  auto complaint = [&](RecomputeChoice choice) { return llvm::toString(problem.verify(choice)); };
  RecomputeChoice choice = *problem.solve();
  EXPECT_EQ(complaint(choice), "");
  EXPECT_EQ(complaint(problem.evaluate({false, false})), "an argument that is needed is not saved");
  choice.bytes = 1;
  EXPECT_EQ(complaint(choice), "the choice saves 20 bytes and costs 0 ns, not 1 and 0");
  choice.saved = {true};
  EXPECT_EQ(complaint(choice), "the choice speaks of 1 values, expected 2");
  RecomputeChoice large = problem.evaluate({false, true});
  problem.budget = 15;
  EXPECT_EQ(complaint(large), "the choice saves 20 bytes of a budget of 15");
  problem.values[0].inputs = {1};
  EXPECT_EQ(llvm::toString(problem.check()), "value 'x' is computed from value 1, which is not defined above it");
  problem.values[0].inputs = {};
  problem.values[0].cost = int64_t(1) << 51;
  EXPECT_EQ(llvm::toString(problem.check()), "the values are too large to add");
}
