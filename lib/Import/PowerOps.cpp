// Powers, remainders and bits: what integers do in their own way.
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

/// Small constant exponents become products and roots, as PyTorch computes them.
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
  if (operands->values.size() != 2)
    return importer.error() << "op Pow has " << importer.numInputs() << " inputs, expected 2";
  // Base and exponent may differ in type; integers are raised as doubles, which hold what fits 53 bits.
  Type element = operands->element(0), common = isa<FloatType>(element) ? element : Type(builder.getF64Type());
  Value base = buildConvert(builder, importer.loc, (*operands)[0], common);
  Value by = buildConvert(builder, importer.loc, (*operands)[1], common);
  Value result = PowerOp::create(builder, importer.loc, base, by);
  return bindElements(importer, buildConvert(builder, importer.loc, result, element), *operands);
}

/// fmod: the sign of the dividend. Otherwise that of the divisor, as Python's %.
LogicalResult importMod(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 2, false);
  if (failed(operands))
    return failure();
  Term x = termOf(importer, (*operands)[0]), y = x.with((*operands)[1]);
  Term rest = x.with(RemainderOp::create(importer.builder, importer.loc, x, y));
  if (importer.node.intAttribute("fmod", 0) != 0)
    return bindElements(importer, rest, *operands);
  Term apart = x.with(XorOp::create(importer.builder, importer.loc, rest.compare(Predicate::lt, 0), y.compare(Predicate::lt, 0)));
  Term wrong = x.with(AndOp::create(importer.builder, importer.loc, apart, rest.compare(Predicate::ne, 0)));
  return bindElements(importer, wrong.select(rest + y, rest), *operands);
}

LogicalResult importBitwiseNot(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, false);
  if (failed(operands))
    return failure();
  if (!isa<IntegerType>(operands->element(0)))
    return importer.error() << "op BitwiseNot of " << operands->element(0) << ", expected integers";
  return bindElements(importer, NotOp::create(importer.builder, importer.loc, (*operands)[0]), *operands);
}

/// Shifts by the width or more give 0. Numbers that are signed here shift in zeros, as the unsigned ones of the model.
LogicalResult importBitShift(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 2, false);
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
