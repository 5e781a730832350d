// No contraction to fused multiply-adds here: the bits must be the same everywhere.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#include "par/files/Random.h"

namespace par::core {

namespace {

/// Horner's rule; the last coefficient is the constant term.
template <size_t N>
inline double polynomial(const double (&coefficients)[N], double x) {
  double sum = 0.0;
  for (double c : coefficients)
    sum = sum * x + c;
  return sum;
}

// atanh(s)/s - 1 over s^2 (|s| < 0.1716: the next term is below 1e-19), and the series of cosine and sine up to
// an eighth of a turn.
constexpr double atanhSeries[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                  1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
constexpr double cosineSeries[] = {1.0 / 20922789888000,
                                   -1.0 / 87178291200,
                                   1.0 / 479001600,
                                   -1.0 / 3628800,
                                   1.0 / 40320,
                                   -1.0 / 720,
                                   1.0 / 24,
                                   -1.0 / 2,
                                   1.0};
constexpr double sineSeries[] = {1.0 / 355687428096000,
                                 -1.0 / 1307674368000,
                                 1.0 / 6227020800,
                                 -1.0 / 39916800,
                                 1.0 / 362880,
                                 -1.0 / 5040,
                                 1.0 / 120,
                                 -1.0 / 6,
                                 1.0};

} // namespace

double naturalLog(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.4142135623730951) {
    m = m * 0.5;
    exponent += 1;
  }
  double s = (m - 1.0) / (m + 1.0), square = s * s;
  double log = 2.0 * (s + s * (square * polynomial(atanhSeries, square)));
  return static_cast<double>(exponent) * 0.6931471805599453 + log;
}

double cosineOfTurn(double u) {
  // To the nearest quarter turn, exactly; then the series in an angle of at most an eighth.
  double quarters = u * 4.0;
  int quadrant = static_cast<int>(quarters + 0.5);
  double angle = (quarters - quadrant) * 1.5707963267948966;
  double square = angle * angle;
  if (quadrant & 1)
    return (quadrant & 2 ? 1.0 : -1.0) * (angle * polynomial(sineSeries, square));
  return (quadrant & 2 ? -1.0 : 1.0) * polynomial(cosineSeries, square);
}

} // namespace par::core
