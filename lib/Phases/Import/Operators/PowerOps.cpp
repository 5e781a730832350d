// Powers, remainders and bits: ops with rules of their own for integers.
#include "Operands.h"
#include "par/Dialect/Ranges.h"

namespace par {
namespace {

using namespace mlir;

/// Integers to the power of integers, by squaring: exact, and wrapping as multiplication does. `bits`: bit width of the
/// largest exponent. From 64 on only 0, 1 and -1 have powers that fit, which depend only on the exponent's parity.
Term raiseIntegers(Term base, Term exponent, unsigned bits, bool negative) {
  auto bitOf = [](Term number, int64_t bit) {
    return number.with(AndOp::create(number.getBuilder(), number.getLoc(), number, number.splat(double(bit))));
  };
  Term parity = bitOf(exponent, 1), one = base.splat(1), result = one, square = base;
  Term few = bits > 6 ? exponent.compare(Predicate::lt, 64).select(exponent, parity + 62) : exponent;
  for (unsigned bit = 0; bit < std::min(bits, 6u); ++bit) {
    square = bit ? square * square : base;
    result = bitOf(few, int64_t(1) << bit).compare(Predicate::ne, 0).select(result * square, result);
  }
  if (!negative)
    return result;
  // A negative power of an integer is 0, except for 1 and -1.
  Term turned = parity.compare(Predicate::ne, 0).select(base.splat(-1), one);
  Term unit = base.compare(Predicate::eq, -1).select(turned, base.splat(0));
  unit = base.compare(Predicate::eq, 1).select(one, unit);
  return exponent.compare(Predicate::lt, 0).select(unit, result);
}

/// The same for operands of any integer types; the exponent may be known.
Value raiseIntegers(NodeImporter &importer, const Operands &operands, const StaticTensor *exponent) {
  unsigned bits = operands.element(1).getIntOrFloatBitWidth() - 1;
  bool negative = true;
  if (exponent && exponent->getStoredCount() > 0) {
    int64_t least = exponent->intAt(0), most = least;
    for (int64_t i = 0; i < exponent->getStoredCount(); ++i) {
      least = std::min(least, exponent->intAt(i));
      most = std::max(most, exponent->intAt(i));
    }
    negative = least < 0;
    bits = most > 0 ? llvm::Log2_64(most) + 1 : 0;
  }
  Term by = termOf(importer, operands[1]).convert(importer.builder.getI64Type());
  return raiseIntegers(termOf(importer, operands[0]), by, bits, negative);
}

/// Converts a power computed in floats to an integer: towards zero, but to the nearest integer if only rounding
/// separates them (3 to the power of 2.0 may be 8.999999999999998).
Value roundPower(Term power, Type element) {
  Term whole = power.with(RoundOp::create(power.getBuilder(), power.getLoc(), power));
  Term apart = power - whole, room = power * 1e-13;
  Term near = (apart * apart).compare(Predicate::le, room * room);
  return near.select(whole, power).convert(element);
}

/// Small constant exponents become multiplications and roots, as PyTorch computes them.
LogicalResult importPow(NodeImporter &importer) {
  const StaticTensor *exponent = importer.known(1);
  std::optional<double> power = exponent ? exponent->splat() : std::nullopt;
  FailureOr<RankedTensorType> type = importer.type(0);
  if (failed(type))
    return failure();
  OpBuilder &builder = importer.builder;
  if (power && exponent->getRank() <= type->getRank() && exponent->getElements() == 1 &&
      isa<FloatType>(type->getElementType())) {
    FailureOr<Value> x = importer.tensor(0);
    if (failed(x))
      return failure();
    if (*power == 1)
      return importer.bind(*x);
    if (*power == 0.5)
      return importer.bind(SqrtOp::create(builder, importer.loc, *type, *x));
    if (*power == -0.5)
      return importer.bind(RsqrtOp::create(builder, importer.loc, *type, *x));
    if (*power == -1)
      return importer.bind(ReciprocalOp::create(builder, importer.loc, *type, *x));
    if (*power == 2 || *power == 3) {
      Value result = MultiplyOp::create(builder, importer.loc, *x, *x);
      if (*power == 3)
        result = MultiplyOp::create(builder, importer.loc, result, *x);
      return importer.bind(result);
    }
  }
  FailureOr<Operands> operands = joinOperands(importer);
  if (failed(operands))
    return failure();
  Type element = operands->element(0);
  if (isa<IntegerType>(element) && isa<IntegerType>(operands->element(1)))
    return bindElements(importer, raiseIntegers(importer, *operands, exponent), *operands);
  // Base and exponent may differ in type; a power of an integer and a float is computed in f64, exact up to 53 bits.
  Type common = isa<FloatType>(element) ? element : Type(builder.getF64Type());
  Value base = buildConvert(builder, importer.loc, (*operands)[0], common);
  Value by = buildConvert(builder, importer.loc, (*operands)[1], common);
  Value result = PowerOp::create(builder, importer.loc, base, by);
  if (isa<IntegerType>(element))
    result = roundPower(termOf(importer, result), element);
  return bindElements(importer, result, *operands);
}

/// fmod: the sign of the dividend. Otherwise that of the divisor, as Python's %.
LogicalResult importMod(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  Term x = termOf(importer, (*operands)[0]), y = x.with((*operands)[1]);
  Term rest = x.with(RemainderOp::create(importer.builder, importer.loc, x, y));
  if (importer.node.intAttribute("fmod", 0) != 0)
    return bindElements(importer, rest, *operands);
  if (isa<IntegerType>(operands->element(0)) && rangeOf(y).low > 0)
    return bindElements(importer, rest.compare(Predicate::lt, 0).select(rest + y, rest), *operands);
  Term apart = x.with(
      XorOp::create(importer.builder, importer.loc, rest.compare(Predicate::lt, 0), y.compare(Predicate::lt, 0)));
  Term wrong = x.with(AndOp::create(importer.builder, importer.loc, apart, rest.compare(Predicate::ne, 0)));
  return bindElements(importer, wrong.select(rest + y, rest), *operands);
}

LogicalResult importBitwiseNot(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  if (!isa<IntegerType>(operands->element(0)))
    return importer.error() << "op BitwiseNot of " << operands->element(0) << ", expected integers";
  return bindElements(importer, NotOp::create(importer.builder, importer.loc, (*operands)[0]), *operands);
}

/// Shifts by the width or more give 0. Numbers that are signed here shift in zeros, as the unsigned ones of the model.
LogicalResult importBitShift(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  StringRef direction(importer.node.stringAttribute("direction", ""));
  if (!isa<IntegerType>(operands->element(0)) || (direction != "LEFT" && direction != "RIGHT"))
    return importer.error() << "op BitShift of " << operands->element(0) << " with direction \"" << direction
                            << "\", expected integers and LEFT or RIGHT";
  Value x = (*operands)[0], by = (*operands)[1], result;
  if (direction == "LEFT")
    result = ShiftLeftOp::create(importer.builder, importer.loc, x, by);
  else
    result = ShiftRightOp::create(importer.builder, importer.loc, x, by);
  return bindElements(importer, result, *operands);
}

} // namespace

void addPowerImports(ImportTable &table) {
  table["Pow"] = importPow;
  table["Mod"] = importMod;
  table["BitShift"] = importBitShift;
  table["BitwiseNot"] = importBitwiseNot;
}

} // namespace par
