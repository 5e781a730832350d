// Random numbers are Philox's, and depend only on the element.
#include "par/files/Random.h"
#include "par/files/Rectangles.h"
#include "par/kernels/LowPrecision.h"
#include "par/messages/Failure.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

using namespace par;

namespace {

// Known answers of Random123's kat_vectors for philox4x32, 10 rounds.
TEST(Random, philoxKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(core::philox({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(core::philox({~0u, ~0u, ~0u, ~0u}, ~uint64_t(0)), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(core::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, logarithmAndCosine) {
  for (int i = 1; i < 10000; ++i) {
    double u = i / 10000.0;
    EXPECT_NEAR(core::naturalLog(u), std::log(u), 4e-16 * std::abs(std::log(u)));
    EXPECT_NEAR(core::cosineOfTurn(u), std::cos(2 * std::numbers::pi * u), 1e-15);
  }
  EXPECT_EQ(core::cosineOfTurn(0.25), 0.0);
}

TEST(Random, normalsHaveMeanZeroAndDeviationOne) {
  double sum = 0, squares = 0;
  int n = 100000;
  for (int i = 0; i < n; ++i) {
    double z = core::randomNormal(3, static_cast<uint64_t>(i), core::randomStream("w"), 0);
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

// A shard holds the values that the whole tensor has there, and padding is 0.
TEST(Random, initialValuesDoNotDependOnTheSharding) {
  format::InitRule rule{format::InitRule::Normal, 0.5, 2};
  format::Layout whole{{5, 6}, {5, 6}, {{{0, 0}, {5, 6}, {0}}}};
  format::Layout sharded{{5, 6}, {3, 6}, {{{0, 0}, {3, 6}, {0}}, {{3, 0}, {2, 6}, {1}}}};
  std::vector<float> all(30), part(18, 9.0f);
  core::initialize(reinterpret_cast<std::byte *>(all.data()), format::DType::F32, whole, whole.parts[0], rule, "w", 1);
  core::initialize(reinterpret_cast<std::byte *>(part.data()), format::DType::F32, sharded, sharded.parts[1], rule, "w",
                   1);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(part[static_cast<size_t>(i)], all[static_cast<size_t>(18 + i)]);
  for (size_t i = 12; i < 18; ++i)
    EXPECT_EQ(part[i], 0.0f);
  EXPECT_NE(all[0], all[1]);
}

TEST(Random, initialValuesOfHalfPrecisionAreRounded) {
  format::Layout whole{{4}, {4}, {{{0}, {4}, {0}}}};
  format::InitRule rule{format::InitRule::Normal, 0, 1};
  float single[4];
  uint16_t bf16[4], f16[4];
  core::initialize(reinterpret_cast<std::byte *>(single), format::DType::F32, whole, whole.parts[0], rule, "w", 1);
  core::initialize(reinterpret_cast<std::byte *>(bf16), format::DType::BF16, whole, whole.parts[0], rule, "w", 1);
  core::initialize(reinterpret_cast<std::byte *>(f16), format::DType::F16, whole, whole.parts[0], rule, "w", 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(bf16[i], kernels::toBF16(single[i]));
    EXPECT_EQ(f16[i], kernels::toF16(single[i]));
  }
}

TEST(Random, initialValuesOfOtherTypesAreRefused) {
  format::Layout whole{{1}, {1}, {{{0}, {1}, {0}}}};
  std::byte half[2];
  try {
    core::initialize(half, format::DType::I16, whole, whole.parts[0], {format::InitRule::Normal, 0, 1}, "w", 1);
    FAIL();
  } catch (const core::Failure &failure) {
    EXPECT_NE(std::string(failure.what()).find("initial values of type i16 is not supported yet"), std::string::npos)
        << failure.what();
  }
}

} // namespace
