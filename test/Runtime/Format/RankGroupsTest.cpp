// The table of disjoint groups against a search of all members.
#include "par/format/RankGroups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace par::format;

/// Ranks below `ranks` in random groups; some ranks are in none.
static RankGroups::Lists randomGroups(uint32_t ranks, std::mt19937 &random) {
  std::vector<uint32_t> order(ranks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  RankGroups::Lists lists;
  for (size_t at = random() % 3; at < order.size();) {
    size_t end = std::min<size_t>(order.size(), at + 1 + random() % 5);
    lists.emplace_back(order.begin() + at, order.begin() + end);
    at = end;
  }
  return lists;
}

TEST(RankGroups, FindsWhatASearchFinds) {
  std::mt19937 random(51);
  for (uint32_t ranks : {0u, 1u, 2u, 7u, 64u, 300u}) {
    RankGroups groups(randomGroups(ranks, random));
    size_t found = 0, listed = 0;
    for (const std::vector<uint32_t> &list : groups)
      listed += list.size();
    for (uint32_t rank = 0; rank < ranks + 2; ++rank) {
      auto in = std::ranges::find_if(groups, [&](const auto &list) { return std::ranges::count(list, rank) > 0; });
      std::optional<Membership> place = groups.find(rank);
      ASSERT_EQ(place.has_value(), in != groups.end()) << rank << " of " << ranks;
      if (!place)
        continue;
      ++found;
      EXPECT_EQ(place->group, in - groups.begin());
      EXPECT_EQ(groups[place->group][place->member], rank);
    }
    EXPECT_EQ(found, listed);
  }
}

// A manifest is read before it is checked: the first place counts, and a large number takes no memory of its size.
TEST(RankGroups, UncheckedLists) {
  RankGroups groups{{4000000000u, 1}, {1, 2}};
  EXPECT_EQ(groups.find(1)->group, 0u);
  EXPECT_EQ(groups.find(1)->member, 1u);
  EXPECT_EQ(groups.find(2)->group, 1u);
  EXPECT_EQ(groups.find(4000000000u)->member, 0u);
  EXPECT_FALSE(groups.find(0));
  groups = {{0}};
  EXPECT_FALSE(groups.find(1));
  EXPECT_TRUE(groups.find(0));
}
