// Convolutions with channels last, and what follows them in one call, against the plain builtin and sums in f64.
#include "par/cpu/Matmul.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/PackedConvolution.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

using namespace par::kernels;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Images, groups, channels of one, outputs; in both dims the input, window, stride, padding and dilation.
struct Case {
  uint64_t n, groups, c, o, in, window, stride, pad, dilation;

  uint64_t out() const { return (in + 2 * pad - (window - 1) * dilation - 1) / stride + 1; }
  uint64_t places(uint64_t side) const { return side * side; }
  std::vector<uint64_t> immediates() const {
    return {n, groups, c,      o, 1,   in,  in, 1,   window, window, 1,        out(),   out(),
            1, stride, stride, 0, pad, pad, 0,  pad, pad,    1,      dilation, dilation};
  }
};

std::vector<float> seeded(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(n);
  std::ranges::generate(values, [&] { return uniform(generator); });
  return values;
}

/// [n, channels, places] to [n, places, channels].
std::vector<float> channelsLast(const std::vector<float> &values, uint64_t n, uint64_t channels) {
  std::vector<float> last(values.size());
  uint64_t places = values.size() / n / channels;
  for (uint64_t i = 0; i < values.size(); ++i)
    last[(i / places / channels * places + i % places) * channels + i / places % channels] = values[i];
  return last;
}

class LastConvolutions : public testing::TestWithParam<Case> {
protected:
  const Case &shape = GetParam();
  uint64_t inputs = shape.n * shape.groups * shape.c * shape.places(shape.in),
           outputs = shape.n * shape.o * shape.places(shape.out());
  std::vector<float> x = seeded(inputs, 1), w = seeded(shape.o * shape.c * shape.places(shape.window), 2),
                     scale = seeded(shape.o, 3), bias = seeded(shape.o, 4), residual = seeded(outputs, 5);

  /// The plain builtin's result, with channels last.
  std::vector<float> convolved(std::vector<float> filter) {
    std::vector<float> y(outputs);
    std::vector<uint64_t> imm = shape.immediates();
    void *pointers[] = {x.data(), filter.data(), y.data()};
    builtinFunction("convolution")(pointers, imm.data(), 0, builtinTiles(*findBuiltin("convolution"), imm));
    return channelsLast(y, shape.n, shape.o);
  }
  /// Sums of that many terms, added in another order.
  double tolerance() const { return 2e-6 * double(shape.c * shape.places(shape.window)); }
};

TEST_P(LastConvolutions, fuseWhatFollows) {
  constexpr std::pair<double, double> bounds[] = {
      {-infinity, infinity}, {0, infinity}, {-0.25, 0.5}, {-infinity, 0.25}};
  std::vector<float> last = channelsLast(x, shape.n, shape.groups * shape.c), plain = convolved(w);
  for (unsigned which = 0; which < 8; ++which) {
    auto [low, high] = bounds[(which + which / 4) % 4];
    bool hasScale = which & 1, hasBias = which & 2, hasResidual = which & 4;
    std::vector<uint64_t> imm = shape.immediates();
    for (uint64_t more :
         {uint64_t(hasScale), uint64_t(hasBias), uint64_t(hasResidual), realImmediate(low), realImmediate(high)})
      imm.push_back(more);
    std::vector<float> y(outputs, 7);
    std::vector<void *> pointers{last.data(), w.data(), y.data()};
    for (auto [has, operand] : {std::pair(hasScale, &scale), {hasBias, &bias}, {hasResidual, &residual}})
      if (has)
        pointers.push_back(operand->data());
    builtinFunction("convolution_last")(pointers.data(), imm.data(), 0, 1);
    if (hasResidual) {
      std::vector<float> inPlace = residual;
      pointers[2] = inPlace.data();
      builtinFunction("convolution_last_add")(pointers.data(), imm.data(), 0, 1);
      EXPECT_EQ(inPlace, y) << which;
    }
    for (uint64_t i = 0; i < outputs; ++i) {
      double wanted = double(plain[i]) * (hasScale ? scale[i % shape.o] : 1) + (hasBias ? bias[i % shape.o] : 0) +
                      (hasResidual ? residual[i] : 0);
      ASSERT_NEAR(y[i], std::clamp(wanted, low, high), tolerance()) << i << ", " << which;
    }
  }
}

// A filter is packed once; again for another scale.
TEST_P(LastConvolutions, keepTheFilterUntilToldToForget) {
  std::vector<float> last = channelsLast(x, shape.n, shape.groups * shape.c), first = convolved(w), filter = w;
  std::vector<uint64_t> imm = shape.immediates();
  for (uint64_t more : {uint64_t(1), uint64_t(0), uint64_t(0), realImmediate(-infinity), realImmediate(infinity)})
    imm.push_back(more);
  std::vector<float> y(outputs), twice(shape.o, 2.0f), once(shape.o, 1.0f);
  PackedConvolution convolution;
  auto expect = [&](std::vector<float> &factor, const std::vector<float> &wanted, float times) {
    void *pointers[] = {last.data(), filter.data(), y.data(), factor.data()};
    convolution.run(pointers, imm.data());
    for (uint64_t i = 0; i < outputs; ++i)
      ASSERT_NEAR(y[i], times * wanted[i], 2 * tolerance()) << i;
  };
  expect(once, first, 1);
  EXPECT_GE(convolution.bytes(), filter.size() * sizeof(float));
  std::ranges::reverse(filter);
  expect(once, first, 1);
  convolution.forget();
  expect(once, convolved(filter), 1);
  expect(twice, convolved(filter), 2);
}

// A NaN stays one under bounds, wherever it comes from, and its neighbours stay what they are; on one thread and two.
TEST_P(LastConvolutions, keepNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::vector<uint64_t> imm = shape.immediates();
  for (uint64_t more : {uint64_t(1), uint64_t(1), uint64_t(1), uint64_t(0), uint64_t(0)})
    imm.push_back(more);
  size_t middle = shape.window / 2 * (shape.window + 1); // a place that meets no padding
  struct Place {
    float *value, given;
  };
  const std::vector<Place> places[] = {{},
                                       {{&x[inputs / 2], nan}},
                                       {{&x.back(), -nan}},
                                       {{&w[middle], nan}},
                                       {{&scale.back(), nan}},
                                       {{&bias[0], nan}},
                                       {{&residual[0], nan}, {&residual.back(), -nan}},
                                       {{&residual[0], inf}, {&bias[0], -inf}}};
  for (int threads : {1, 2})
    for (auto [low, high] : {std::pair(0.0, infinity), {0.0, 6.0}, {-infinity, 0.25}})
      for (const std::vector<Place> &given : places) {
        auto before = std::tuple(x, w, scale, bias, residual);
        for (const Place &place : given)
          *place.value = place.given;
        imm[imm.size() - 2] = realImmediate(low);
        imm.back() = realImmediate(high);
        std::vector<float> last = channelsLast(x, shape.n, shape.groups * shape.c), plain = convolved(w), y(outputs);
        void *pointers[] = {last.data(), w.data(), y.data(), scale.data(), bias.data(), residual.data()};
        par::cpu::setLibraryThreads(threads);
        PackedConvolution convolution;
        convolution.run(pointers, imm.data());
        size_t bytes = convolution.bytes();
        std::vector<float> inPlace = residual;
        pointers[2] = inPlace.data();
        PackedConvolution(ResidualPlace::Result).run(pointers, imm.data());
        bool isAnyNan = false;
        for (uint64_t i = 0; i < outputs; ++i) {
          float wanted = plain[i] * scale[i % shape.o] + bias[i % shape.o] + residual[i];
          ASSERT_EQ(std::isnan(y[i]), std::isnan(wanted)) << i << ", place " << &given - places << ", to " << high;
          ASSERT_EQ(std::isnan(inPlace[i]), std::isnan(wanted)) << i << ", place " << &given - places << ", in place";
          isAnyNan |= std::isnan(wanted);
          if (std::isfinite(wanted)) {
            ASSERT_NEAR(inPlace[i], std::clamp(double(wanted), low, high), 2 * tolerance()) << i << ", in place";
            ASSERT_NEAR(y[i], std::clamp(double(wanted), low, high), 2 * tolerance()) << i;
          }
        }
        std::tie(x, w, scale, bias, residual) = before;
        // A second computation has packed the filter a second time.
        convolution.forget();
        // A thread of the library that takes no part in a call may keep an earlier flag: then one is computed for
        // nothing.
        if (isAnyNan || threads == 1)
          EXPECT_EQ(convolution.bytes() < bytes, isAnyNan) << &given - places << ", " << threads << " threads";
      }
  par::cpu::setLibraryThreads(1);
}

// An infinite or huge value reaches the places whose windows hold it and no other: transforms of pieces of an image
// would spread it.
TEST_P(LastConvolutions, keepInfinitiesInTheirPlaces) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<uint64_t> imm = shape.immediates();
  for (uint64_t more : {uint64_t(0), uint64_t(0), uint64_t(0), uint64_t(0), realImmediate(infinity)})
    imm.push_back(more);
  for (auto [place, given] : {std::pair(&x[inputs / 2], inf), {&x.back(), -inf}, {&x[0], 1e38f}, {&w[0], 1e38f}}) {
    float before = std::exchange(*place, given);
    std::vector<float> last = channelsLast(x, shape.n, shape.groups * shape.c), plain = convolved(w), y(outputs);
    void *pointers[] = {last.data(), w.data(), y.data()};
    PackedConvolution().run(pointers, imm.data());
    for (uint64_t i = 0; i < outputs; ++i) {
      float wanted = std::max(plain[i], 0.0f);
      ASSERT_TRUE(std::isinf(wanted) ? y[i] == wanted : std::abs(y[i] - wanted) <= tolerance() + 1e-5f * wanted)
          << i << ": " << y[i] << ", not " << wanted << ", for " << given;
    }
    *place = before;
  }
}

// Winograd's algorithm, where the library has it: its filter has 16 or 36 numbers for 9.
TEST(LastConvolution, TransformsWideImages) {
  for (auto [shape, isWide] : {std::pair(Case{2, 1, 48, 64, 16, 3, 1, 1, 1}, true),
                               {Case{2, 1, 48, 64, 15, 3, 1, 1, 1}, false},
                               {Case{2, 1, 32, 64, 16, 3, 1, 1, 1}, false},
                               {Case{2, 1, 48, 64, 32, 3, 2, 1, 1}, false}}) {
    std::vector<float> x = seeded(shape.n * shape.c * shape.places(shape.in), 1), w = seeded(shape.o * shape.c * 9, 2),
                       y(shape.n * shape.o * shape.places(shape.out()));
    std::vector<uint64_t> imm = shape.immediates();
    for (uint64_t more : {uint64_t(0), uint64_t(0), uint64_t(0), realImmediate(-infinity), realImmediate(infinity)})
      imm.push_back(more);
    void *pointers[] = {x.data(), w.data(), y.data()};
    PackedConvolution convolution, direct(ResidualPlace::Operand, ConvolutionWay::Direct);
    convolution.run(pointers, imm.data());
    direct.run(pointers, imm.data());
    bool hasWideVectors = __builtin_cpu_supports("avx512dq");
    EXPECT_EQ(convolution.bytes() > direct.bytes(), isWide && hasWideVectors) << shape.c << ", " << shape.in;
  }
}

// A plain one, single elements, more channels than a vector, strides, gaps, one channel a group, odd sizes, groups,
// channels enough for a transform.
INSTANTIATE_TEST_SUITE_P(Shapes, LastConvolutions,
                         testing::Values(Case{2, 1, 3, 5, 7, 3, 1, 1, 1}, Case{1, 1, 16, 32, 6, 1, 1, 0, 1},
                                         Case{2, 1, 24, 40, 5, 3, 1, 1, 1}, Case{2, 1, 8, 16, 9, 3, 2, 1, 1},
                                         Case{1, 1, 16, 16, 9, 3, 1, 2, 2}, Case{2, 24, 1, 24, 8, 3, 1, 1, 1},
                                         Case{1, 5, 1, 5, 9, 5, 2, 2, 1}, Case{1, 1, 1, 1, 4, 2, 1, 0, 1},
                                         Case{1, 2, 3, 4, 6, 3, 1, 1, 1}, Case{3, 1, 7, 9, 5, 2, 3, 0, 1},
                                         Case{2, 1, 48, 64, 16, 3, 1, 1, 1}));

} // namespace
