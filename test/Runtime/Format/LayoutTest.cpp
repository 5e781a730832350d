#include "par/format/Layout.h"

#include <gtest/gtest.h>

using namespace par::format;

namespace {

TEST(Rectangles, CopiesShareOneListUntilOneIsWritten) {
  Rectangles first{{{0}, {4}, {0}}, {{4}, {4}, {1}}};
  Rectangles second = first;
  EXPECT_EQ(first.identity(), second.identity());
  EXPECT_EQ(first, second);
  second[1].ranks = {1, 2};
  EXPECT_NE(first.identity(), second.identity());
  EXPECT_EQ(std::as_const(first)[1].ranks, std::vector<uint32_t>{1});
  EXPECT_NE(first, second);
}

TEST(Rectangles, EqualListsOfTwoOriginsAreEqual) {
  Rectangles first{{{0}, {4}, {0}}}, second;
  EXPECT_NE(first, second);
  second.push_back({{0}, {4}, {0}});
  EXPECT_NE(first.identity(), second.identity());
  EXPECT_EQ(first, second);
  second.clear();
  EXPECT_EQ(second, Rectangles());
}

} // namespace
