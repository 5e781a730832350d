// Layouts have one number if and only if all of them is equal: what is proved of one is not said of another.
#include "format/LayoutNumbers.h"

#include <gtest/gtest.h>

using namespace par::format;

TEST(LayoutNumbers, EqualLayoutsHaveOneNumber) {
  Layout first{{6, 4}, {2, 4}, {{{0, 0}, {2, 4}, {0}}, {{2, 0}, {2, 4}, {1}}, {{4, 0}, {2, 4}, {2}}}};
  Layout same = first, otherRank = first, otherStart = first, otherLocal = first;
  otherRank.parts[1].ranks = {3};
  otherStart.parts[1].start = {2, 1};
  otherLocal.local = {3, 4};
  LayoutNumbers numbers;
  EXPECT_EQ(numbers.of(first), 0u);
  EXPECT_EQ(numbers.of(same), 0u);
  EXPECT_EQ(numbers.of(otherRank), 1u);
  EXPECT_EQ(numbers.of(otherStart), 2u);
  EXPECT_EQ(numbers.of(otherLocal), 3u);
  EXPECT_EQ(numbers.of(otherRank), 1u);
  EXPECT_EQ(numbers.of(first), 0u);
}
