// Trigonometric, hyperbolic and testing functions, from those that the dialect has.
#include "Operands.h"

#include <limits>

namespace par {
namespace {

using namespace mlir;

constexpr double infinity = std::numeric_limits<double>::infinity();

template <Term (*formula)(Term)>
LogicalResult importFunction(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, true);
  if (failed(operands))
    return failure();
  return bindElements(importer, formula(termOf(importer, (*operands)[0])), *operands);
}

Term absolute(Term x) { return x.with(AbsOp::create(x.getBuilder(), x.getLoc(), x)); }
Term tan(Term x) { return sin(x) / cos(x); }
Term floorOf(Term x) { return x.with(FloorOp::create(x.getBuilder(), x.getLoc(), x)); }
/// The nearest integer, of two the even one. x less its floor is exact, so that no sum rounds on the way.
Term round(Term x) {
  Term below = floorOf(x), rest = x - below;
  Term odd = below - floorOf(below * 0.5) * 2.0;
  Term tie = (rest.compare(Predicate::eq, 0.5)).select(odd, rest.splat(0));
  return rest.compare(Predicate::gt, 0.5).select(below + 1.0, below + tie);
}
Term sinh(Term x) { return 0.5 * (exp(x) - exp(-x)); }
Term cosh(Term x) { return 0.5 * (exp(x) + exp(-x)); }
/// sign(x) log(1 + (|x| + x^2 / (1 + sqrt(x^2 + 1)))): odd, and close for small x.
Term asinh(Term x) {
  Term a = absolute(x), square = x * x;
  return sign(x) * log(1.0 + (a + square / (1.0 + sqrt(square + 1.0))));
}
Term acosh(Term x) { return log(x + sqrt((x - 1.0) * (x + 1.0))); }
Term atanh(Term x) { return 0.5 * log((1.0 + x) / (1.0 - x)); }

LogicalResult importIsInf(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, true);
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
  table["Sinh"] = importFunction<sinh>;
  table["Cosh"] = importFunction<cosh>;
  table["Asinh"] = importFunction<asinh>;
  table["Acosh"] = importFunction<acosh>;
  table["Atanh"] = importFunction<atanh>;
  table["Round"] = importFunction<round>;
  table["IsInf"] = importIsInf;
}

} // namespace par
