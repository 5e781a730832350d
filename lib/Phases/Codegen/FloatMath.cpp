// Branch-free elementary functions on f32 and f64: range reduction, then a Taylor series or a fitted polynomial whose
// next term is below half a unit of the last place.
#include "FloatMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace par::codegen {

using arith::CmpFPredicate;
using arith::FastMathFlags;

static constexpr double infinity = std::numeric_limits<double>::infinity();

//===-- Steps --------------------------------------------------------------------------------===//

Value FloatMath::number(double value) {
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
}
Value FloatMath::add(Value x, Value y) { return arith::AddFOp::create(builder, loc, x, y, FastMathFlags::contract); }
Value FloatMath::subtract(Value x, Value y) {
  return arith::SubFOp::create(builder, loc, x, y, FastMathFlags::contract);
}
Value FloatMath::multiply(Value x, Value y) {
  return arith::MulFOp::create(builder, loc, x, y, FastMathFlags::contract);
}
Value FloatMath::divide(Value x, Value y) { return arith::DivFOp::create(builder, loc, x, y); }
Value FloatMath::abs(Value x) { return math::AbsFOp::create(builder, loc, x); }
Value FloatMath::floor(Value x) { return math::FloorOp::create(builder, loc, x); }
Value FloatMath::truncate(Value x) {
  Value up = math::CeilOp::create(builder, loc, x);
  return select(compare(CmpFPredicate::OLT, x, number(0)), up, floor(x));
}
Value FloatMath::roundEven(Value x) {
  // From this limit on every number is an integer; below it the sum has no bits for a fraction. Not to be folded: no
  // flags.
  Value limit = number(wide ? 0x1p52 : 0x1p23), a = abs(x);
  Value shifted = arith::AddFOp::create(builder, loc, a, limit);
  Value nearest = arith::SubFOp::create(builder, loc, shifted, limit);
  return select(compare(CmpFPredicate::OLT, a, limit), withSign(nearest, x), x);
}
Value FloatMath::compare(CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(builder, loc, predicate, x, y);
}
Value FloatMath::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(builder, loc, condition, x, y);
}
Value FloatMath::withSign(Value x, Value sign) { return math::CopySignOp::create(builder, loc, x, sign); }

Value FloatMath::polynomial(Value x, ArrayRef<double> c) {
  Value sum = number(c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    sum = add(multiply(sum, x), number(coefficient));
  return sum;
}

Value FloatMath::sumInPairs(Value x, ArrayRef<double> c) {
  SmallVector<Value> terms = llvm::map_to_vector(c, [&](double each) { return number(each); });
  for (Value power = x; terms.size() > 1; power = multiply(power, power)) {
    for (size_t i = 0; i < terms.size(); i += 2)
      terms[i / 2] = i + 1 < terms.size() ? add(multiply(terms[i + 1], power), terms[i]) : terms[i];
    terms.resize((terms.size() + 1) / 2);
  }
  return terms.front();
}

Value FloatMath::clamp(Value x, double low, double high) {
  // Ordered comparisons: NaN fails both and stays.
  x = select(compare(CmpFPredicate::OLT, x, number(low)), number(low), x);
  return select(compare(CmpFPredicate::OGT, x, number(high)), number(high), x);
}

Type FloatMath::integerType() { return builder.getIntegerType(wide ? 64 : 32); }
Value FloatMath::integer(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(integerType(), value));
}
Value FloatMath::bits(Value x) { return arith::BitcastOp::create(builder, loc, integerType(), x); }
Value FloatMath::fromBits(Value x) { return arith::BitcastOp::create(builder, loc, type, x); }

std::pair<Value, Value> FloatMath::round(Value x) {
  // Adding 1.5 * 2^mantissaBits leaves the nearest integer in the low bits. Unlike a conversion this is
  // defined for NaN. The sum and the difference must not be folded: no flags.
  Value magic = number(wide ? 0x1.8p52 : 0x1.8p23);
  Value shifted = arith::AddFOp::create(builder, loc, x, magic);
  Value nearest = arith::SubFOp::create(builder, loc, shifted, magic);
  return {nearest, arith::SubIOp::create(builder, loc, bits(shifted), bits(magic))};
}

Value FloatMath::powerOfTwo(Value n) {
  Value exponent = arith::AddIOp::create(builder, loc, n, integer(bias()));
  return fromBits(arith::ShLIOp::create(builder, loc, exponent, integer(mantissaBits())));
}

FloatMath::Reduced FloatMath::reduceByLn2(Value x) {
  // Cody and Waite: the high part of ln 2 has so few bits that n times it is exact.
  double high = wide ? 0x1.62e42feep-1 : 0x1.63p-1, low = wide ? 0x1.a39ef35793c76p-33 : std::numbers::ln2 - 0x1.63p-1;
  auto [n, integral] = round(multiply(x, number(std::numbers::log2e)));
  Value rest = subtract(x, multiply(n, number(high)));
  return {subtract(rest, multiply(n, number(low))), integral, n};
}

/// 1 / k! from k = first on.
static SmallVector<double> inverseFactorials(unsigned first, unsigned last) {
  SmallVector<double> c;
  double factorial = 1;
  for (unsigned k = 1; k <= last; ++k) {
    factorial *= k;
    if (k >= first)
      c.push_back(1 / factorial);
  }
  return c;
}

//===-- Functions ----------------------------------------------------------------------------===//

// Taylor series end where the next term is below half a unit of the last place at |r| = ln 2 / 2.
Value FloatMath::exp(Value x) {
  Reduced reduced = reduceByLn2(clamp(x, wide ? -750 : -105, wide ? 710 : 90));
  SmallVector<double> c{1};
  llvm::append_range(c, inverseFactorials(1, wide ? 13 : 7));
  Value p = polynomial(reduced.rest, c);
  // In two steps, because 2^n itself may be no normal number.
  Value half = arith::ShRSIOp::create(builder, loc, reduced.n, integer(1));
  Value other = arith::SubIOp::create(builder, loc, reduced.n, half);
  return multiply(multiply(p, powerOfTwo(half)), powerOfTwo(other));
}

Value FloatMath::expm1(Value x) {
  Reduced reduced = reduceByLn2(x);
  Value p = multiply(reduced.rest, polynomial(reduced.rest, inverseFactorials(1, wide ? 14 : 8)));
  Value scale = powerOfTwo(reduced.n);
  return add(multiply(scale, p), subtract(scale, number(1)));
}

FloatMath::Scaled FloatMath::scale(Value x) {
  Value tiny = compare(CmpFPredicate::OLT, x, number(wide ? 0x1p-1022 : 0x1p-126));
  Value normal = select(tiny, multiply(x, number(wide ? 0x1p54 : 0x1p25)), x);
  Value two3rds = bits(number(2.0 / 3.0)), offset = arith::SubIOp::create(builder, loc, bits(normal), two3rds);
  Value e = arith::ShRSIOp::create(builder, loc, offset, integer(mantissaBits()));
  Value shifted = arith::ShLIOp::create(builder, loc, e, integer(mantissaBits()));
  Value m = fromBits(arith::SubIOp::create(builder, loc, bits(normal), shifted));
  Value exponent = arith::SIToFPOp::create(builder, loc, type, e);
  return {m, add(exponent, select(tiny, number(wide ? -54 : -25), number(0)))};
}

/// 2 / (2 k + 1) for k = 1 to last: log m = 2 atanh(s) with s = (m - 1) / (m + 1), |s| <= 1/5, is s times 2 and these
/// times the powers of s^2.
static SmallVector<double> logarithmSeries(unsigned last) {
  SmallVector<double> c;
  for (unsigned k = 1; k <= last; ++k)
    c.push_back(2.0 / (2 * k + 1));
  return c;
}

Value FloatMath::log(Value x) {
  auto [m, exponent] = scale(x);
  Value f = subtract(m, number(1)), s = divide(f, add(f, number(2))), square = multiply(s, s);
  // 2 s = f - s f, which loses nothing where f is small.
  Value tail = multiply(s, subtract(multiply(square, polynomial(square, logarithmSeries(wide ? 11 : 5))), f));
  double high = wide ? 0x1.62e42feep-1 : 0x1.63p-1, low = wide ? 0x1.a39ef35793c76p-33 : std::numbers::ln2 - 0x1.63p-1;
  Value small = add(tail, multiply(exponent, number(low)));
  Value result = add(multiply(exponent, number(high)), add(f, small));

  // Negative numbers and NaN fail the comparison.
  result = select(compare(CmpFPredicate::OGE, x, number(0)), result, number(std::numeric_limits<double>::quiet_NaN()));
  result = select(compare(CmpFPredicate::OEQ, x, number(infinity)), x, result);
  return select(compare(CmpFPredicate::OEQ, x, number(0)), number(-infinity), result);
}

Value FloatMath::tanh(Value x) {
  // Beyond 20 (f32: 10) the result is 1 when rounded.
  Value twice = multiply(clamp(abs(x), 0, wide ? 20 : 10), number(2));
  Value e = expm1(twice);
  return withSign(divide(e, add(e, number(2))), x);
}

/// 2 / sqrt(pi) times (-1)^k / (k! (2k + 1)) for k = 0 to last: erf x is x times these times the powers of x^2.
static SmallVector<double> erfSeries(unsigned last) {
  SmallVector<double> series;
  double factorial = 1;
  for (unsigned k = 0; k <= last; ++k) {
    factorial *= k == 0 ? 1 : k;
    series.push_back((k % 2 ? -1 : 1) * 2 * std::numbers::inv_sqrtpi / (factorial * (2 * k + 1)));
  }
  return series;
}

// |x| < 1: the series, as far as its next term at 1 is below half a unit of the last place.
Value FloatMath::erf(Value x) {
  Value near = multiply(x, polynomial(multiply(x, x), erfSeries(wide ? 19 : 10)));
  // Beyond the limit erf is 1 when rounded.
  Value magnitude = clamp(abs(x), 0, wide ? 6 : 4), one = number(1);
  Value far = withSign(subtract(one, wide ? erfcByFraction(magnitude) : erfcByLogarithm(magnitude)), x);
  return select(compare(CmpFPredicate::OLT, magnitude, one), near, far);
}

// e^g(x), g the least-squares fit of log erfc of degree 8 on Chebyshev nodes of [1, 4], whose error is 8e-10.
Value FloatMath::erfcByLogarithm(Value x) {
  static constexpr double fit[] = {0.000296073484, -1.13013608,    -0.631992247,    -0.109923583,  0.0263320935,
                                   -0.00472819298, 0.000590087657, -4.52593458e-05, 1.59666381e-06};
  return exp(polynomial(x, fit));
}

// e^(-x^2) times e^(x^2) erfc x, which is nearly a polynomial of u = (x - 2) / (x + 2), as Schonfelder 1978 and
// Shepherd and Laframboise 1981 have it. The polynomial goes through that at the Chebyshev nodes of u([1, 6]), computed
// with 50 digits; times e^(-x^2) it is off by at most 9e-18 there, so that erf is by at most 2 units of the last place,
// its rounding included.
Value FloatMath::erfcByFraction(Value x) {
  static constexpr double fit[] = {
      0x1.058671b52c775p-2,   -0x1.b57034efd3f74p-2, 0x1.eeea7dc8a7bb2p-3,   -0x1.437f0b68c0663p-4,
      0x1.e9471591b7446p-9,   0x1.ca95ed532b303p-8,  -0x1.bc25a010847bep-11, -0x1.016b5e511a3f0p-10,
      0x1.6d589c869e092p-15,  0x1.6dab5fdd60b62p-13, 0x1.ce62d05252d06p-16,  -0x1.cfbc05a3f041ap-16,
      -0x1.db57ed0f1c283p-17, 0x1.f322e0892648ep-20, 0x1.1640edd9e223dp-18,  -0x1.de7cb807e82e6p-23};
  Value two = number(2), u = divide(subtract(x, two), add(x, two));
  Value scale = exp(arith::NegFOp::create(builder, loc, multiply(x, x)));
  return multiply(scale, polynomial(u, fit));
}

Value FloatMath::sine(Value x, bool cosine) {
  // The reduction by pi / 2 is done in f64, so that it holds up to |x| about 2^30.
  FloatMath exact(builder, loc, builder.getF64Type());
  Value wideX = wide ? x : arith::ExtFOp::create(builder, loc, builder.getF64Type(), x).getResult();
  auto [n, integral] = exact.round(exact.multiply(wideX, exact.number(2 / std::numbers::pi)));
  Value rest = exact.subtract(wideX, exact.multiply(n, exact.number(0x1.921fb544p+0)));
  rest = exact.subtract(rest, exact.multiply(n, exact.number(0x1.0b4611a626331p-34)));
  Value r = wide ? rest : arith::TruncFOp::create(builder, loc, type, rest).getResult();
  Value quadrant = arith::AndIOp::create(builder, loc, integral, exact.integer(3));
  if (cosine)
    quadrant = arith::AndIOp::create(builder, loc, arith::AddIOp::create(builder, loc, quadrant, exact.integer(1)),
                                     exact.integer(3));
  SmallVector<double> sines{1}, cosines{1};
  double factorial = 1;
  for (unsigned k = 1; k <= (wide ? 9 : 6); ++k) {
    factorial *= -1.0 * (2 * k - 1) * (2 * k);
    cosines.push_back(1 / factorial);
    sines.push_back(1 / (factorial * (2 * k + 1)));
  }
  Value square = multiply(r, r);
  Value sin = multiply(r, polynomial(square, sines)), cos = polynomial(square, cosines);
  auto isBit = [&](int64_t bit) {
    Value masked = arith::AndIOp::create(builder, loc, quadrant, exact.integer(bit));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, masked, exact.integer(0));
  };
  Value value = select(isBit(1), cos, sin);
  return select(isBit(2), arith::NegFOp::create(builder, loc, value), value);
}

Value FloatMath::atan(Value x) {
  // Above 1 by the reciprocal's angle, above tan(pi / 8) by that to pi / 4: the series then runs in |r| <=
  // 0.4143.
  Value a = abs(x), one = number(1);
  Value isLarge = compare(CmpFPredicate::OGT, a, one);
  a = select(isLarge, divide(one, a), a);
  Value isMiddle = compare(CmpFPredicate::OGT, a, number(std::numbers::sqrt2 - 1));
  Value r = select(isMiddle, divide(subtract(a, one), add(a, one)), a);
  SmallVector<double> series;
  for (unsigned k = 0; k < (wide ? 21 : 10); ++k)
    series.push_back((k % 2 ? -1.0 : 1.0) / (2 * k + 1));
  Value angle = multiply(r, polynomial(multiply(r, r), series));
  angle = select(isMiddle, add(angle, number(std::numbers::pi / 4)), angle);
  angle = select(isLarge, subtract(number(std::numbers::pi / 2), angle), angle);
  return withSign(angle, x);
}

// The logarithm's error is multiplied by up to 104, so it is taken in f64, but only to 2^-36, and the power of two to
// 2^-32: less than half the terms of functions of f64, added up in pairs. Exponents are split off in f32, as integers
// of 64 bits have neither shifts nor conversions of vectors on x86-64-v3.
Value FloatMath::powerByWide(Value size, Value y) {
  FloatMath exact(builder, loc, builder.getF64Type());
  auto widen = [&](Value value) -> Value { return arith::ExtFOp::create(builder, loc, exact.type, value); };
  auto [m, exponent] = scale(size);
  // Infinity and NaN are their own logarithms, by way of the exponent.
  exponent = select(compare(CmpFPredicate::OLT, size, number(infinity)), exponent, size);
  exponent = select(compare(CmpFPredicate::OEQ, size, number(0)), number(-infinity), exponent);
  Value f = exact.subtract(widen(m), exact.number(1)), s = exact.divide(f, exact.add(f, exact.number(2)));
  SmallVector<double> c{2};
  llvm::append_range(c, logarithmSeries(6));
  for (double &each : c)
    each *= std::numbers::log2e;
  Value log2 = exact.add(exact.multiply(s, exact.sumInPairs(exact.multiply(s, s), c)), widen(exponent));

  // An infinite exponent times log2(1) would be NaN; the largest finite one gives the right result.
  double most = std::numeric_limits<float>::max();
  Value t = exact.clamp(exact.multiply(widen(clamp(y, -most, most)), log2), -160, 140);
  auto [n, integral] = exact.round(t);
  c = {1};
  llvm::append_range(c, inverseFactorials(1, 8));
  for (size_t k = 1; k < c.size(); ++k)
    c[k] *= std::pow(std::numbers::ln2, k);
  Value power = exact.multiply(exact.sumInPairs(exact.subtract(t, n), c), exact.powerOfTwo(integral));
  return arith::TruncFOp::create(builder, loc, type, power);
}

Value FloatMath::power(Value x, Value y) {
  Value size = abs(x), zero = number(0);
  Value result = wide ? exp(multiply(y, log(size))) : powerByWide(size, y);
  // A finite negative base has a power only for an integer exponent. A negative base, -0 too, gives its sign to an odd
  // power.
  Value halved = multiply(y, number(0.5)), integral = compare(CmpFPredicate::OEQ, floor(y), y);
  Value odd = arith::AndIOp::create(builder, loc, integral, compare(CmpFPredicate::ONE, floor(halved), halved));
  result = select(odd, withSign(result, x), result);
  Value finite = arith::AndIOp::create(builder, loc, compare(CmpFPredicate::OLT, x, zero),
                                       compare(CmpFPredicate::OLT, size, number(infinity)));
  Value none = arith::AndIOp::create(builder, loc, finite, compare(CmpFPredicate::ONE, floor(y), y));
  result = select(none, number(std::numeric_limits<double>::quiet_NaN()), result);
  Value one = arith::OrIOp::create(builder, loc, compare(CmpFPredicate::OEQ, y, zero),
                                   compare(CmpFPredicate::OEQ, x, number(1)));
  return select(one, number(1), result);
}

} // namespace par::codegen
