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

// 1,000 random DAGs: a choice is found exactly if there is one, and it is the optimum, as its bound says.
TEST(RecomputeChoice, AgainstExhaustiveSearch) {
  std::mt19937 random(1);
  unsigned feasible = 0;
  for (unsigned trial = 0; trial < 1000; ++trial) {
    RecomputeProblem problem = randomChoice(random);
    int64_t best = problem.solveExhaustively();
    auto choice = problem.solve();
    ASSERT_EQ(bool(choice), best >= 0) << "trial " << trial;
    ASSERT_EQ(bool(choice), problem.minBytes() <= problem.budget) << "trial " << trial;
    if (!choice) {
      llvm::consumeError(choice.takeError());
      continue;
    }
    ASSERT_EQ(llvm::toString(problem.verify(*choice)), "") << "trial " << trial;
    ASSERT_EQ(choice->cost, best) << "trial " << trial << "\n" << problem.toText();
    ASSERT_EQ(choice->minCost, best) << "trial " << trial;
    ++feasible;
  }
  EXPECT_GT(feasible, 500u);
}

/// Layers as a transformer has them: what each keeps can be computed again from the stream between layers, which is
/// itself kept or computed again from the layer before.
static RecomputeProblem layers(unsigned count) {
  RecomputeProblem problem;
  auto add = [&](int64_t cost, int64_t bytes, std::vector<unsigned> inputs, bool needed) {
    problem.values.push_back({"v", cost, bytes, std::move(inputs), needed, false});
    return unsigned(problem.values.size() - 1);
  };
  unsigned stream = add(0, 17, {}, true);
  for (unsigned layer = 0; layer < count; ++layer) {
    unsigned norm = add(3, 17, {stream}, true), heads = add(52, 51, {norm}, true);
    unsigned attention = add(23, 19, {heads}, true), middle = add(19, 17, {attention, stream}, true);
    unsigned wide = add(71, 68, {add(3, 17, {middle}, true)}, true);
    stream = add(73, 17, {add(5, 68, {wide}, false), middle}, true);
  }
  return problem;
}

// 48 equal layers have very many equal choices, of which the search keeps one.
TEST(RecomputeChoice, EqualLayers) {
  RecomputeProblem problem = layers(48);
  RecomputeChoice all = problem.evaluate(std::vector<bool>(problem.values.size(), true));
  for (int64_t tenth = 2; tenth < 10; ++tenth) {
    problem.budget = all.bytes * tenth / 10 + tenth;
    auto choice = problem.solve();
    ASSERT_TRUE(bool(choice));
    EXPECT_EQ(llvm::toString(problem.verify(*choice)), "");
    EXPECT_EQ(choice->cost, choice->minCost) << tenth << " tenths";
  }
}

// A chain of 400 equal values at half of its bytes: every second one is computed again.
TEST(RecomputeChoice, LongChains) {
  RecomputeProblem problem;
  for (unsigned i = 0; i < 400; ++i)
    problem.values.push_back({"v", 10, 100, i == 0 ? std::vector<unsigned>{} : std::vector{i - 1}, true, false});
  problem.budget = 100 * 200 + 50;
  auto choice = problem.solve();
  ASSERT_TRUE(bool(choice));
  EXPECT_EQ(llvm::toString(problem.verify(*choice)), "");
  EXPECT_EQ(choice->cost, 2000);
  EXPECT_EQ(choice->minCost, 2000);
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
