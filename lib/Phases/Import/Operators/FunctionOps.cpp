// Trigonometric, hyperbolic and testing functions, from those that the dialect has.
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

template <Term (*formula)(Term)>
LogicalResult importFunction(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, true);
  if (failed(operands))
    return failure();
  return bindElements(importer, formula(termOf(importer, (*operands)[0])), *operands);
}

Term tan(Term x) { return sin(x) / cos(x); }
Term round(Term x) { return x.with(RoundOp::create(x.getBuilder(), x.getLoc(), x)); }
Term atan(Term x) { return x.with(AtanOp::create(x.getBuilder(), x.getLoc(), x)); }
/// The angle whose tangent is x / sqrt(1 - x^2); at 1 that is infinite, as the derivative is.
Term asin(Term x) { return atan(x / sqrt((1.0 - x) * (1.0 + x))); }
/// Twice the angle whose tangent is sqrt((1 - x) / (1 + x)), which is close near 1 too.
Term acos(Term x) { return 2.0 * atan(sqrt((1.0 - x) / (1.0 + x))); }
/// Below 1, where the powers of e cancel: 2 t / (1 - t^2) with t = tanh(x / 2).
Term sinh(Term x) {
  Term isSmall = absolute(x).compare(Predicate::lt, 1), t = tanh(0.5 * isSmall.select(x, x.splat(0)));
  return isSmall.select(2.0 * t / (1.0 - t * t), 0.5 * (exp(x) - exp(-x)));
}
Term cosh(Term x) { return 0.5 * (exp(x) + exp(-x)); }
/// sign(x) log(1 + (|x| + x^2 / (1 + sqrt(x^2 + 1)))): odd, and accurate for small x. Size and sign are selects, so
/// that x has a cotangent at 0 too.
Term asinh(Term x) {
  Term negative = x.compare(Predicate::lt, 0), square = x * x;
  Term result = log1p(negative.select(-x, x) + square / (1.0 + sqrt(square + 1.0)));
  return negative.select(-result, result);
}
Term acosh(Term x) { return log(x + sqrt((x - 1.0) * (x + 1.0))); }
/// As asinh: log(1 + 2 |x| / (1 - |x|)) / 2.
Term atanh(Term x) {
  Term negative = x.compare(Predicate::lt, 0), size = negative.select(-x, x);
  Term result = 0.5 * log1p(2.0 * size / (1.0 - size));
  return negative.select(-result, result);
}

LogicalResult importIsInf(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, true);
  if (failed(operands))
    return failure();
  bool positive = importer.node.intAttribute("detect_positive", 1) != 0;
  bool negative = importer.node.intAttribute("detect_negative", 1) != 0;
  Term x = termOf(importer, (*operands)[0]);
  Value result;
  if (positive && negative)
    result = absolute(x).compare(Predicate::eq, infinity);
  else if (positive || negative)
    result = x.compare(Predicate::eq, positive ? infinity : -infinity);
  else
    result = importer.splat(x.getType().clone(importer.builder.getI1Type()), 0);
  return bindElements(importer, result, *operands);
}

} // namespace

void addFunctionImports(ImportTable &table) {
  table["Tan"] = importFunction<tan>;
  table["Asin"] = importFunction<asin>;
  table["Acos"] = importFunction<acos>;
  table["Atan"] = importFunction<atan>;
  table["Sinh"] = importFunction<sinh>;
  table["Cosh"] = importFunction<cosh>;
  table["Asinh"] = importFunction<asinh>;
  table["Acosh"] = importFunction<acosh>;
  table["Atanh"] = importFunction<atanh>;
  table["Round"] = importFunction<round>;
  table["IsInf"] = importIsInf;
}

} // namespace par
