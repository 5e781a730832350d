// Branch and bound finds what a look at every choice finds.
#include "par/Search/BestFirst.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace par;

namespace {

/// A space whose bounds hold; about a fifth of its choices are impossible, and costs are often equal.
struct RandomSpace {
  std::vector<int64_t> bounds;
  std::vector<std::optional<int64_t>> costs;

  explicit RandomSpace(unsigned seed) {
    std::mt19937 random(seed);
    size_t count = random() % 400;
    for (size_t i = 0; i < count; ++i) {
      int64_t cost = 100 + random() % 60;
      bounds.push_back(cost - static_cast<int64_t>(random() % 80));
      costs.push_back(random() % 5 ? std::optional(cost) : std::nullopt);
    }
  }

  std::vector<std::pair<int64_t, size_t>> exhaustive(size_t keep) const {
    std::vector<std::pair<int64_t, size_t>> all;
    for (size_t i = 0; i < costs.size(); ++i)
      if (costs[i])
        all.push_back({*costs[i], i});
    std::sort(all.begin(), all.end());
    all.resize(std::min(all.size(), keep));
    return all;
  }
};

} // namespace

TEST(BestFirst, EqualsExhaustiveOnRandomSpaces) {
  size_t evaluated = 0, all = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    RandomSpace space(seed);
    for (size_t keep : {1, 3}) {
      BestChoices found = bestFirst(space.bounds, [&](size_t index) { return space.costs[index]; }, keep);
      EXPECT_EQ(found.best, space.exhaustive(keep)) << "space " << seed << ", keep " << keep;
      evaluated += found.evaluated;
      all += space.costs.size();
    }
  }
  EXPECT_LT(evaluated, all * 3 / 4); // bounds cut
}

TEST(BestFirst, StopsAtTheBound) {
  std::vector<int64_t> bounds{50, 10, 30};
  std::vector<size_t> asked;
  auto cost = [&](size_t index) -> std::optional<int64_t> {
    asked.push_back(index);
    return bounds[index] + 5;
  };
  BestChoices found = bestFirst(bounds, cost, 1);
  EXPECT_EQ(found.best, (std::vector<std::pair<int64_t, size_t>>{{15, 1}}));
  EXPECT_EQ(asked, std::vector<size_t>{1});
}
