// The functions that kernels compute without a library, against libm in double: error in units of the last place over
// their whole domain, and their values for zeros, infinities and NaN.
#include "LoadedKernels.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr int count = 1 << 16;

/// Distance of `got` from `want` in units of the last place of the f32 nearest to `want`; subnormal results
/// count as zero does.
double ulps(double want, float got) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  auto nearest = static_cast<float>(want);
  if (std::isinf(nearest) || std::isinf(got))
    return nearest == got ? 0 : 1e9;
  double least = std::numeric_limits<float>::min();
  double unit = std::nextafter(std::max<float>(std::abs(nearest), static_cast<float>(least)), infinity) -
                std::max<double>(std::abs(nearest), least);
  return std::abs(want - got) / unit;
}

struct Function {
  const char *op;
  double (*reference)(double);
  float low, high; ///< of the sampled domain
  double bound;    ///< ulps
};

std::string kernelText(const std::string &op) {
  std::string type = "tensor<" + std::to_string(count) + "xf32>";
  return "par.kernel @" + op + "(%a: " + type + ") -> " + type + " attributes {implementation = \"generated\"} {\n" +
         "  %0 = par." + op + " %a : " + type + "\n  par.return %0 : " + type + "\n}\n";
}

/// A saved value of one kernel is compared with another kernel's recomputation (which element was the largest?): an op
/// rounds alike in every kernel. A fused multiply-add would leave 2^-24 here.
TEST(Rounding, IsTheSameWhereverAnOpIsFusedInto) {
  for (std::string isa : {"", "x86-64-v3", "sm_90"}) {
    LoadedKernels loaded(R"(par.kernel @k(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32>
        attributes {implementation = "generated"} {
      %0 = par.multiply %a, %a : tensor<64xf32>
      %1 = par.subtract %0, %b : tensor<64xf32>
      par.return %1 : tensor<64xf32>
    })",
                         isa);
    std::vector<float> a(64, 1 + 0x1p-12f), b(64, 1 + 0x1p-11f), out(64, -1);
    void *operands[] = {a.data(), b.data(), out.data()};
    ASSERT_EQ(loaded.compiled.kernels.size(), 1u) << isa;
    const par::KernelInfo &info = loaded.compiled.kernels[0];
    loaded.function(info)(operands, nullptr, 0, info.tiles);
    EXPECT_EQ(out, std::vector<float>(64, 0)) << isa;
  }
}

class MathTest : public testing::TestWithParam<Function> {};

TEST_P(MathTest, IsCloseEverywhere) {
  Function function = GetParam();
  LoadedKernels loaded(kernelText(function.op));
  ASSERT_TRUE(loaded.handle);
  std::vector<float> in(count), out(count);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(function.low, function.high);
  for (float &x : in)
    x = uniform(random);
  // Small magnitudes, where relative errors hide.
  for (int i = 0; i < count / 4; ++i)
    in[i] = std::ldexp(in[i], -static_cast<int>(random() % 40));
  const float special[] = {0.0f, -0.0f, infinity, -infinity, notANumber, 1e-45f, -1e-45f, 3e38f, -3.4e38f, 1.0f, -1.0f};
  // Sine and cosine reduce their argument by pi / 2 in f64: beyond 2^30 there is nothing to compare.
  bool periodic = std::string(function.op) == "sin" || std::string(function.op) == "cos";
  std::copy_if(std::begin(special), std::end(special), in.begin(),
               [&](float x) { return !periodic || !std::isfinite(x) || std::abs(x) < 1e9f; });
  void *pointers[] = {in.data(), out.data()};
  const par::KernelInfo &info = loaded.compiled.kernels[0];
  loaded.function(info)(pointers, nullptr, 0, info.tiles);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    double error = ulps(function.reference(in[i]), out[i]);
    worst = std::max(worst, error);
    ASSERT_LE(error, function.bound) << function.op << "(" << in[i] << ") = " << out[i] << ", expected "
                                     << function.reference(in[i]);
  }
  RecordProperty("worst_ulps", std::to_string(worst));
}

/// Powers against std::pow: of all pairs of special numbers, and of numbers whose power is in range.
TEST(PowerTest, IsThatOfTheLibrary) {
  std::string type = "tensor<" + std::to_string(count) + "xf32>";
  LoadedKernels loaded("par.kernel @power(%a: " + type + ", %b: " + type + ") -> " + type +
                       " attributes {implementation = \"generated\"} {\n  %0 = par.power %a, %b : " + type +
                       "\n  par.return %0 : " + type + "\n}\n");
  ASSERT_TRUE(loaded.handle);
  const float special[] = {0.0f,     -0.0f, infinity,       -infinity,   notANumber,   1e-45f,    -1e-45f, 3e38f,
                           -3.4e38f, 1.0f,  -1.0f,          2.0f,        -2.0f,        3.0f,      -3.0f,   0.5f,
                           -0.5f,    1.5f,  0x1.fffffep-1f, 16777215.0f, -16777216.0f, 0x1p-126f, 88.5f};
  std::vector<float> base, exponent, out(count);
  for (float x : special)
    for (float y : special) {
      base.push_back(x);
      exponent.push_back(y);
    }
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  while (base.size() < count) {
    // Every fourth base is near 1, where the logarithm is small and the exponent large.
    double logarithm = base.size() % 4 ? 85 * uniform(random) : std::ldexp(uniform(random), -10);
    auto x = static_cast<float>(std::exp(logarithm));
    base.push_back(base.size() % 8 == 7 ? -x : x);
    auto y = static_cast<float>(103 * uniform(random) / std::log(x));
    exponent.push_back(base.back() < 0 ? std::rint(y) : y);
  }
  void *pointers[] = {base.data(), exponent.data(), out.data()};
  const par::KernelInfo &info = loaded.compiled.kernels[0];
  loaded.function(info)(pointers, nullptr, 0, info.tiles);
  for (int i = 0; i < count; ++i) {
    double want = std::pow(static_cast<double>(base[i]), exponent[i]);
    ASSERT_LE(ulps(want, out[i]), 0.75) << base[i] << " to the power of " << exponent[i] << " = " << out[i]
                                        << ", expected " << want;
    ASSERT_TRUE(want == 0 && out[i] == 0 ? std::signbit(want) == std::signbit(out[i]) : true)
        << base[i] << " to the power of " << exponent[i] << " is a zero of the other sign";
  }
}

/// In double, against erf of 80 bits.
TEST(ErfTest, OfDoublesIsThatOfTheLibrary) {
  std::string type = "tensor<" + std::to_string(count) + "xf64>";
  std::string text = "par.kernel @erf(%a: " + type + ") -> " + type +
                     " attributes {implementation = \"generated\"} {\n" + "  %0 = par.erf %a : " + type +
                     "\n  par.return %0 : " + type + "\n}\n";
  std::vector<double> in(count), out(count);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-6.5, 6.5), nearOne(0.7, 1.5);
  for (int i = 0; i < count; ++i)
    in[i] =
        i % 3 == 0 ? nearOne(random) : std::ldexp(uniform(random), i % 3 == 1 ? 0 : -static_cast<int>(random() % 300));
  constexpr double special[] = {0.0,     -0.0,    infinity, -infinity, notANumber,           5e-324,
                                -5e-324, 1.7e308, 1.0,      -1.0,      0x1.fffffffffffffp-1, 6};
  std::copy(std::begin(special), std::end(special), in.begin());
  for (std::string isa : {"", "x86-64"}) {
    LoadedKernels loaded(text, isa);
    ASSERT_TRUE(loaded.handle);
    void *pointers[] = {in.data(), out.data()};
    const par::KernelInfo &info = loaded.compiled.kernels[0];
    loaded.function(info)(pointers, nullptr, 0, info.tiles);
    for (int i = 0; i < count; ++i) {
      long double want = std::erf(static_cast<long double>(in[i]));
      double nearest = std::abs(static_cast<double>(want)), least = std::numeric_limits<double>::min();
      double unit = std::nextafter(std::max(nearest, least), 2.0) - std::max(nearest, least);
      bool close = std::isnan(want) ? std::isnan(out[i]) : std::abs(static_cast<double>(want - out[i])) <= 2 * unit;
      ASSERT_TRUE(close && std::signbit(out[i]) == std::signbit(in[i])) << "erf(" << in[i] << ") = " << out[i];
    }
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

INSTANTIATE_TEST_SUITE_P(Codegen, MathTest,
                         testing::Values(Function{"exp", std::exp, -110, 95, 2}, Function{"log", std::log, 0, 1e6, 2},
                                         Function{"tanh", std::tanh, -12, 12, 3}, Function{"erf", std::erf, -5, 5, 3},
                                         Function{"sin", std::sin, -1e5, 1e5, 2},
                                         Function{"cos", std::cos, -1e5, 1e5, 2},
                                         Function{"atan", std::atan, -1e3, 1e3, 3},
                                         Function{"sigmoid", sigmoid, -86, 120, 3}),
                         [](const auto &info) { return info.param.op; });

} // namespace
