#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace par::codegen {

/// Builds branch-free arithmetic on one float type, f32 or f64, from which functions are made. Additions and
/// multiplications may be contracted; nothing is reordered, because range reductions live by the order.
class FloatMath {
public:
  FloatMath(mlir::OpBuilder &builder, mlir::Location loc, mlir::FloatType type)
      : builder(builder), loc(loc), type(type), wide(type.isF64()) {}

  mlir::Value number(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value subtract(mlir::Value x, mlir::Value y);
  mlir::Value multiply(mlir::Value x, mlir::Value y);
  mlir::Value divide(mlir::Value x, mlir::Value y);
  mlir::Value abs(mlir::Value x);
  mlir::Value floor(mlir::Value x);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// |x| with the sign of `sign`.
  mlir::Value withSign(mlir::Value x, mlir::Value sign);
  /// c[0] + c[1] x + c[2] x^2 + ...
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<double> c);
  /// The same by Estrin's scheme, whose steps wait for each other less often but which rounds more.
  mlir::Value sumInPairs(mlir::Value x, llvm::ArrayRef<double> c);
  /// x within [low, high]; NaN stays.
  mlir::Value clamp(mlir::Value x, double low, double high);

  /// e^x, over the whole domain, subnormal results included.
  mlir::Value exp(mlir::Value x);
  /// e^x - 1 without cancellation, for |x| <= 80.
  mlir::Value expm1(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value sine(mlir::Value x, bool cosine);
  mlir::Value atan(mlir::Value x);
  /// Towards zero, and to the nearest integer, the even one of two: instructions that not every processor has.
  mlir::Value truncate(mlir::Value x);
  mlir::Value roundEven(mlir::Value x);
  /// x^y as C has it, of signed zeros and infinities too.
  mlir::Value power(mlir::Value x, mlir::Value y);

private:
  /// x = n ln 2 + rest with |rest| <= ln 2 / 2; n as an integer and as a float.
  struct Reduced {
    mlir::Value rest, n, asFloat;
  };
  Reduced reduceByLn2(mlir::Value x);
  /// x = 2^exponent mantissa with 2/3 <= mantissa < 4/3, for a positive finite x.
  struct Scaled {
    mlir::Value mantissa, exponent;
  };
  Scaled scale(mlir::Value x);
  /// 1 - erf x for 1 <= x <= 4, to 1e-9, and for 1 <= x <= 6, to 1e-17.
  mlir::Value erfcByLogarithm(mlir::Value x);
  mlir::Value erfcByFraction(mlir::Value x);
  /// size^y in f32, size >= 0, computed in f64.
  mlir::Value powerByWide(mlir::Value size, mlir::Value y);
  /// The nearest integer as a float, and its low bits as an integer of the same width.
  std::pair<mlir::Value, mlir::Value> round(mlir::Value x);
  /// 2^n for an n that a normal float has as its exponent.
  mlir::Value powerOfTwo(mlir::Value n);
  mlir::Value integer(int64_t value);
  mlir::Value bits(mlir::Value x);
  mlir::Value fromBits(mlir::Value x);
  mlir::Type integerType();
  unsigned mantissaBits() const { return wide ? 52 : 23; }
  int64_t bias() const { return wide ? 1023 : 127; }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::FloatType type;
  bool wide;
};

} // namespace par::codegen
