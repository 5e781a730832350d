#include "par/Base/MeshFactor.h"
#include <gtest/gtest.h>

using namespace par;

TEST(MeshFactor, Primes) {
  for (int64_t number = 1; number < 2000; ++number) {
    int64_t product = 1, last = 2;
    for (int64_t prime : primeFactors(number)) {
      EXPECT_GE(prime, last);
      for (int64_t divisor = 2; divisor < prime; ++divisor)
        EXPECT_NE(prime % divisor, 0);
      product *= last = prime;
    }
    EXPECT_EQ(product, number);
  }
}

TEST(MeshFactor, Axes) {
  using Axes = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(refineAxis("tp", 4), (Axes{{"tp.0", 2}, {"tp.1", 2}}));
  EXPECT_EQ(refineAxis("dp", 3), (Axes{{"dp", 3}}));
  EXPECT_EQ(refineAxis("dp", 1), Axes{});
  EXPECT_EQ(refineAxis("tp", 6), (Axes{{"tp.0", 3}, {"tp.1", 2}}));
  // As part of one that other stages have more of.
  EXPECT_EQ(refineAxis("tp", 2, 4), (Axes{{"tp.0", 2}, {"tp.1", 1}}));
  EXPECT_EQ(refineAxis("tp", 4, 12), (Axes{{"tp.0", 1}, {"tp.1", 2}, {"tp.2", 2}}));
  EXPECT_EQ(refineAxis("dp", 1, 3), (Axes{{"dp", 1}}));
  EXPECT_EQ(refineAxis("dp", 1, 1), Axes{});
}
