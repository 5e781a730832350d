// Spreads say which ranks have equal values, in whatever order ranks stand.
#include "verify/values/RankClasses.h"

#include <gtest/gtest.h>
#include <random>

using namespace par::verify;

namespace {
constexpr uint32_t ranks = 12;
using Spread = RankClasses::Spread;

/// For each two ranks, whether they have one class.
std::vector<bool> equalities(const RankClasses &classes, Spread spread) {
  std::vector<bool> equal;
  for (uint32_t a = 0; a < ranks; ++a)
    for (uint32_t b = 0; b < ranks; ++b)
      equal.push_back(classes.classOf(spread, a) == classes.classOf(spread, b));
  return equal;
}

std::vector<uint32_t> inOrder() { return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; }
} // namespace

TEST(RankClasses, RanksAreEqualWhereTheirKeysAre) {
  RankClasses classes(inOrder());
  Spread spread = classes.byKeys({{3, 7}, {5, 8}, {4, 7}});
  EXPECT_EQ(classes.classOf(spread, 3), classes.classOf(spread, 4));
  EXPECT_NE(classes.classOf(spread, 3), classes.classOf(spread, 5));
  EXPECT_EQ(classes.classOf(spread, 0), 0u);
  EXPECT_EQ(classes.classOf(spread, 11), 0u);
  // The pattern counts, not the keys; other ranks are another pattern.
  EXPECT_EQ(classes.byKeys({{3, 1}, {4, 1}, {5, 0}}), spread);
  EXPECT_NE(classes.byKeys({{4, 7}, {5, 7}, {6, 8}}), spread);
}

TEST(RankClasses, OneKeyIsNoDifference) {
  RankClasses classes(inOrder());
  EXPECT_EQ(classes.byKeys({{3, 7}, {4, 7}}), 0u);
  EXPECT_EQ(classes.byKeys({}), 0u);
}

TEST(RankClasses, TheLastKeyOfARankCounts) {
  RankClasses classes(inOrder());
  EXPECT_EQ(classes.byKeys({{1, 5}, {2, 6}, {1, 6}}), 0u);
}

TEST(RankClasses, ATransferKeepsClassesOnlyWhereTheyAreNotTaken) {
  RankClasses classes(inOrder());
  Spread spread = classes.byKeys({{0, 1}, {1, 2}});
  bool own = true;
  Spread there = classes.moved({spread}, {{4, 0, 0}, {5, 1, 0}}, own);
  EXPECT_TRUE(own);
  EXPECT_EQ(classes.classOf(there, 4), classes.classOf(spread, 0));
  EXPECT_EQ(classes.classOf(there, 5), classes.classOf(spread, 1));
  EXPECT_EQ(classes.classOf(there, 0), 0u);
  // Rank 1 has another class of its own in that spread.
  classes.moved({spread}, {{1, 0, 0}, {0, 0, 0}}, own);
  EXPECT_FALSE(own);
}

// Two ranks send to a third, which sends each a part of what it makes of both: meshes of two ranks and one.
TEST(RankClasses, RoutesTellRanksApartThatHaveTheSameData) {
  RankClasses classes(inOrder());
  Spread data = classes.byKeys({{0, 1}, {1, 2}});
  bool own = true;
  Spread one = classes.moved({data}, {{2, 0, 0}}, own), other = classes.moved({data}, {{2, 1, 0}}, own);
  Spread back = classes.moved({classes.both(one, other)}, {{0, 2, 0}, {1, 2, 0}}, own);
  EXPECT_EQ(classes.classOf(back, 0), classes.classOf(back, 1));
  EXPECT_EQ(classes.both(back, data), back);
  Spread apart = classes.both(back, classes.byKeys({{0, 0}, {1, 1}}, /*route=*/1));
  EXPECT_NE(classes.classOf(apart, 0), classes.classOf(apart, 1));
  // On by the third to a fourth, and back again by another route.
  Spread further = classes.moved({apart}, {{3, 0, 0}}, own), last = classes.moved({apart}, {{3, 1, 0}}, own);
  Spread again = classes.moved({classes.both(further, last)}, {{0, 3, 0}, {1, 3, 0}}, own);
  EXPECT_EQ(classes.classOf(again, 0), classes.classOf(again, 1));
  Spread told = classes.both(again, classes.byKeys({{0, 0}, {1, 1}}, /*route=*/2));
  EXPECT_NE(classes.classOf(told, 0), classes.classOf(told, 1));
}

/// Which classes are equal does not depend on the order in which ranks stand, of 500 random series of steps.
TEST(RankClasses, AnyOrderTellsTheSameRanksApart) {
  std::mt19937 random(1);
  for (int series = 0; series < 500; ++series) {
    std::vector<uint32_t> order = inOrder();
    std::shuffle(order.begin(), order.end(), random);
    RankClasses plain(inOrder()), other(order);
    std::vector<std::pair<Spread, Spread>> made{{0, 0}};
    for (int step = 0; step < 12; ++step) {
      auto [a, b] = made[random() % made.size()];
      auto [c, d] = made[random() % made.size()];
      if (random() % 2) {
        made.push_back({plain.both(a, c), other.both(b, d)});
      } else if (random() % 2) {
        std::vector<RankClasses::Key> keys;
        for (uint32_t rank = random() % ranks; rank < ranks; rank += 1 + random() % 3)
          keys.push_back({rank, random() % 3});
        made.push_back({plain.byKeys(keys), other.byKeys(keys)});
      } else {
        std::vector<RankClasses::Move> moves;
        for (uint32_t rank = random() % ranks; rank < ranks; rank += 1 + random() % 3)
          moves.push_back({rank, uint32_t(random() % ranks), uint32_t(random() % 2)});
        bool own = random() % 2, same = own;
        made.push_back({plain.moved({a, c}, moves, own), other.moved({b, d}, moves, same)});
        ASSERT_EQ(own, same);
      }
      ASSERT_EQ(equalities(plain, made.back().first), equalities(other, made.back().second)) << "series " << series;
      for (auto [first, second] : made)
        ASSERT_EQ(first == made.back().first, second == made.back().second) << "series " << series;
    }
  }
}
