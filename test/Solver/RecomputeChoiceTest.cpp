// Choices against exhaustive search on random DAGs, and on chains and layers whose optimum is known.
#include "par/Solver/Recompute/RecomputeChoice.h"
#include "llvm/ADT/STLExtras.h"
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

/// Two more peaks at random, of weights that fall between those of the budget, and a few values that can be moved.
static RecomputeProblem randomPeaks(std::mt19937 &random) {
  RecomputeProblem problem = randomChoice(random);
  problem.values.resize(std::min<size_t>(problem.values.size(), 8));
  unsigned movable = 0;
  for (ForwardValue &value : problem.values)
    if (random() % 3 == 0 && !value.isAvailable && movable++ < 4)
      value.copyNs = int64_t(random() % 40);
  problem.hiddenForward = int64_t(random() % 30);
  problem.hiddenBackward = problem.hiddenForward + int64_t(random() % 30);
  for (unsigned count = 2; count > 0; --count) {
    BytePeak peak;
    int64_t all = 0;
    for (const ForwardValue &value : problem.values) {
      peak.saved.push_back(value.bytes * int64_t(random() % 3));
      peak.recomputed.push_back(random() % 3 ? 0 : value.bytes);
      peak.moved.push_back(random() % 4 ? 0 : value.bytes);
      all += value.needed ? peak.saved.back() : 0;
    }
    peak.limit = all * int64_t(2 + random() % 8) / 10;
    problem.peaks.push_back(std::move(peak));
  }
  return problem;
}

// 1,000 random DAGs with three peaks, where values can be moved too: the optimum of all, and the text reads back.
TEST(RecomputeChoice, PeaksAndCopiesAgainstExhaustiveSearch) {
  std::mt19937 random(2);
  unsigned feasible = 0, moved = 0;
  for (unsigned trial = 0; trial < 1000; ++trial) {
    RecomputeProblem problem = randomPeaks(random);
    int64_t best = problem.solveExhaustively();
    auto choice = problem.solve();
    ASSERT_EQ(bool(choice), best >= 0) << "trial " << trial << "\n" << problem.toText();
    if (!choice) {
      llvm::consumeError(choice.takeError());
      continue;
    }
    ASSERT_EQ(llvm::toString(problem.verify(*choice)), "") << "trial " << trial;
    ASSERT_EQ(choice->cost, best) << "trial " << trial << "\n" << problem.toText();
    ASSERT_EQ(choice->minCost, best) << "trial " << trial << "\n" << problem.toText();
    ProblemText text(problem.toText());
    ASSERT_EQ(llvm::cantFail(RecomputeProblem::parse(text)).toText(), problem.toText());
    ++feasible;
    moved += choice->copyNs > 0;
  }
  EXPECT_GT(feasible, 500u);
  EXPECT_GT(moved, 100u);
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

// 24 equal layers, two peaks: the second counts the first half of the layers, where gradients leave less room. Copies
// that forward hides are free, so that some values are moved. Without copies the choice is the best to 0.1 %; with
// them, to less than one small matmul of a layer.
TEST(RecomputeChoice, EqualLayersWithPeaksAndCopies) {
  RecomputeProblem problem = layers(24);
  RecomputeChoice all = problem.evaluate(std::vector<bool>(problem.values.size(), true));
  BytePeak half;
  for (auto [index, value] : llvm::enumerate(problem.values))
    half.saved.push_back(index < problem.values.size() / 2 ? value.bytes : 0);
  half.recomputed.assign(problem.values.size(), 0);
  half.moved = half.recomputed;
  for (bool moves : {false, true})
    for (int64_t tenth : {3, 5, 7}) {
      problem.budget = all.bytes * tenth / 10 + tenth;
      half.limit = problem.budget * 3 / 10;
      problem.peaks = {half};
      problem.hiddenForward = 900, problem.hiddenBackward = 1800;
      for (ForwardValue &value : problem.values)
        value.copyNs = moves ? 4 * value.bytes : -1;
      auto choice = problem.solve();
      ASSERT_TRUE(bool(choice));
      EXPECT_EQ(llvm::toString(problem.verify(*choice)), "");
      EXPECT_EQ(choice->copyNs > 0, moves);
      EXPECT_LE(choice->cost - choice->minCost, moves ? 18 : choice->cost / 1000) << tenth << " tenths";
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
  EXPECT_EQ(complaint(RecomputeChoice::notFound(3)), "no choice was found; none costs less than 3 ns");
  RecomputeChoice large = problem.evaluate({false, true});
  problem.budget = 15;
  EXPECT_EQ(complaint(large), "the choice saves 20 bytes of a budget of 15");
  problem.budget = 25;
  problem.peaks = {{15, {10, 20}, {0, 0}, {0, 0}}};
  EXPECT_EQ(complaint(large), "the choice has 20 bytes at a peak of at most 15");
  EXPECT_EQ(complaint(problem.evaluate({false, false}, {false, true})), "value 'y' is moved, which it cannot be");
  problem.peaks[0].moved = {0};
  EXPECT_EQ(llvm::toString(problem.check()), "a peak counts 1 values, expected 2");
  problem.peaks = {};
  problem.values[0].inputs = {1};
  EXPECT_EQ(llvm::toString(problem.check()), "value 'x' is computed from value 1, which is not defined above it");
  problem.values[0].inputs = {};
  problem.values[0].cost = int64_t(1) << 51;
  EXPECT_EQ(llvm::toString(problem.check()), "the values are too large to add");
}
