// Choices of shards are the best of all, told by trying each.
#include "par/Solver/Shard/ShardChoice.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace par;

namespace {

bool isAllowed(const ShardProblem &problem, const std::vector<bool> &sharded) {
  return std::none_of(problem.conflicts.begin(), problem.conflicts.end(),
                      [&](auto &conflict) { return sharded[conflict.first] && sharded[conflict.second]; });
}

int64_t triedBest(const ShardProblem &problem) {
  int64_t most = 0;
  for (size_t bits = 0; bits < size_t(1) << problem.classes; ++bits) {
    std::vector<bool> sharded;
    for (size_t index = 0; index < problem.classes; ++index)
      sharded.push_back(bits >> index & 1);
    if (isAllowed(problem, sharded))
      most = std::max(most, savedBy(problem, sharded));
  }
  return most;
}

ShardProblem draw(unsigned seed) {
  std::mt19937 dice(seed);
  auto upTo = [&](unsigned end) { return dice() % end; };
  ShardProblem problem;
  problem.classes = 1 + upTo(9);
  for (unsigned count = upTo(24); count > 0; --count) {
    ShardProblem::Effect effect;
    for (size_t index = 0; index < problem.classes; ++index)
      if (upTo(3) == 0)
        effect.members.push_back(index);
    effect.ns = int64_t(upTo(200)) - 110;
    problem.effects.push_back(effect);
  }
  for (unsigned count = upTo(5); count > 0; --count)
    if (size_t one = upTo(problem.classes), other = upTo(problem.classes); one != other)
      problem.conflicts.push_back({one, other});
  return problem;
}

} // namespace

TEST(ShardChoice, IsTheBestOfAll) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    ShardProblem problem = draw(seed);
    ShardChoice choice = chooseShards(problem);
    EXPECT_TRUE(isAllowed(problem, choice.sharded)) << "seed " << seed;
    EXPECT_EQ(choice.saved, savedBy(problem, choice.sharded)) << "seed " << seed;
    EXPECT_EQ(choice.saved, triedBest(problem)) << "seed " << seed;
    EXPECT_EQ(choice.atMost, choice.saved) << "seed " << seed;
  }
}

TEST(ShardChoice, ASumThatSeveralShareIsPaidOnce) {
  // Each by itself saves less than the sum of the value that both read costs.
  ShardProblem problem{2, {{{0}, 6}, {{1}, 6}, {{0, 1}, -10}}, {}};
  EXPECT_EQ(chooseShards(problem).sharded, (std::vector<bool>{true, true}));
  problem.conflicts.push_back({0, 1});
  EXPECT_EQ(chooseShards(problem).sharded, (std::vector<bool>{false, false}));
}

TEST(ShardChoice, SaysHowFarItIsWhereItEndsEarly) {
  // Any two exclude each other but for pairs, and all save nearly the same.
  ShardProblem problem;
  problem.classes = 60;
  for (size_t one = 0; one < problem.classes; ++one) {
    problem.effects.push_back({{one}, 1000 + int64_t(one)});
    problem.effects.push_back({{one, (one + 7) % problem.classes, (one + 20) % problem.classes}, -900});
  }
  ShardChoice choice = chooseShards(problem);
  EXPECT_EQ(choice.saved, savedBy(problem, choice.sharded));
  EXPECT_LT(choice.saved, choice.atMost);
}
