// Activations, each a formula over terms.
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

/// A formula of one float operand; more of the node are attributes.
template <Term (*formula)(NodeImporter &, Term)>
LogicalResult importFormula(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, true);
  if (failed(operands))
    return failure();
  return bindElements(importer, formula(importer, termOf(importer, (*operands)[0])), *operands);
}

double attribute(NodeImporter &importer, const char *name, double otherwise) {
  return importer.node.floatAttribute(name, otherwise);
}

Term maximum(Term x, double bound) { return x.with(MaximumOp::create(x.getBuilder(), x.getLoc(), x, x.splat(bound))); }
Term clamp(Term x, double low, double high) { return minimum(maximum(x, low), x.splat(high)); }
/// x if it is positive, else `negative`.
Term positiveElse(Term x, Term negative) { return x.compare(Predicate::gt, 0).select(x, negative); }
// Building blocks of smooth activations. Their comparisons give x the cotangent also at 0, the output of a layer of
// zeros; min(x, 0) and |x| have gradient 0 there.
Term negativePart(Term x) { return x.compare(Predicate::gt, 0).select(x.splat(0), x); }
/// -|x|.
Term negativeSize(Term x) { return x.compare(Predicate::gt, 0).select(-x, x); }
/// e^x - 1 for x <= 0 without cancellation: 2 t / (1 - t), t = tanh(x / 2). Positive x count as 0.
Term expm1Below(Term x) {
  Term t = tanh(negativePart(x) * 0.5);
  return 2.0 * t / (1.0 - t);
}
/// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
Term softplus(Term x) { return maximum(x, 0) + log1p(exp(negativeSize(x))); }

/// 0 up to `bound`, x above. NaN stays: it is no less than anything.
Term zeroUpTo(Term x, double bound) { return x.compare(Predicate::le, bound).select(x.splat(0), x); }

// Not maximum: relu has the gradient 0 at 0, and PyTorch's maximum has a half.
Term relu(NodeImporter &, Term x) { return zeroUpTo(x, 0); }
Term leakyRelu(NodeImporter &i, Term x) { return positiveElse(x, x * attribute(i, "alpha", 0.01)); }
Term thresholdedRelu(NodeImporter &i, Term x) { return zeroUpTo(x, attribute(i, "alpha", 1)); }
Term elu(NodeImporter &i, Term x) { return positiveElse(x, expm1Below(x) * attribute(i, "alpha", 1)); }
Term celu(NodeImporter &i, Term x) {
  double alpha = attribute(i, "alpha", 1);
  return positiveElse(x, expm1Below(x / alpha) * alpha);
}
Term selu(NodeImporter &i, Term x) {
  double alpha = attribute(i, "alpha", 1.67326319217681884765625);
  return positiveElse(x, expm1Below(x) * alpha) * attribute(i, "gamma", 1.05070102214813232421875);
}
Term hardSigmoid(NodeImporter &i, Term x) {
  return clamp(x * attribute(i, "alpha", 0.2) + attribute(i, "beta", 0.5), 0, 1);
}
Term hardSwish(NodeImporter &, Term x) { return x * clamp(x / 6 + 0.5, 0, 1); }
Term swish(NodeImporter &i, Term x) { return x * sigmoid(x * attribute(i, "alpha", 1)); }
/// x tanh(log(1 + e^x)) by one exponential: tanh(log(1 + u)) = u (u + 2) / (u (u + 2) + 2). With w = e^-|x|, which
/// cannot overflow, that is (1 + 2 w) / (1 + 2 w + 2 w^2) for positive x, and its numerator is w (w + 2) for all
/// others.
Term mish(NodeImporter &, Term x) {
  Term w = exp(negativeSize(x)), positive = x.compare(Predicate::gt, 0), square = w * w;
  Term numerator = 2.0 * w + positive.select(w.splat(1), square);
  return x * (numerator / (numerator + positive.select(2.0 * square, w.splat(2))));
}
Term softplusOf(NodeImporter &, Term x) { return softplus(x); }
Term softsign(NodeImporter &, Term x) { return x / (1.0 + absolute(x)); }
Term shrink(NodeImporter &i, Term x) {
  double lambda = attribute(i, "lambd", 0.5), bias = attribute(i, "bias", 0);
  Term above = x.compare(Predicate::gt, lambda).select(x - bias, x.splat(0));
  return x.compare(Predicate::lt, -lambda).select(x + bias, above);
}

LogicalResult importGelu(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, true);
  if (failed(operands))
    return failure();
  bool tanh = importer.node.stringAttribute("approximate", "none") == "tanh";
  return bindElements(importer, GeluOp::create(importer.builder, importer.loc, operands->type(0), (*operands)[0], tanh),
                      *operands);
}

LogicalResult importPRelu(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, true);
  if (failed(operands))
    return failure();
  Term x = termOf(importer, (*operands)[0]);
  return bindElements(importer, positiveElse(x, x * x.with((*operands)[1])), *operands);
}

LogicalResult importShrink(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  return bindElements(importer, shrink(importer, termOf(importer, (*operands)[0])), *operands);
}

LogicalResult importClip(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  Value low, high;
  for (size_t i : {1, 2}) {
    const char *attribute = i == 1 ? "min" : "max"; // before opset 11
    Value &bound = i == 1 ? low : high;
    if (importer.has(i)) {
      FailureOr<Value> given = importer.stretched(i, type.getShape());
      if (failed(given))
        return failure();
      if (given->getType() != type)
        return importer.error() << "its " << attribute << " is " << given->getType() << ", the operand " << type;
      bound = *given;
    } else if (importer.node.attribute(attribute)) {
      bound = importer.splat(type, importer.node.floatAttribute(attribute, 0));
    }
  }
  // PyTorch's clamp passes the cotangent at a bound, so the op must choose the left operand there.
  Term result = termOf(importer, *x);
  if (low)
    result = result.compare(Predicate::lt, low).select(low, result);
  if (high)
    result = result.compare(Predicate::gt, high).select(high, result);
  return importer.bind(result);
}

} // namespace

void addActivationImports(ImportTable &table) {
  table["Relu"] = importFormula<relu>;
  table["LeakyRelu"] = importFormula<leakyRelu>;
  table["ThresholdedRelu"] = importFormula<thresholdedRelu>;
  table["PRelu"] = importPRelu;
  table["Elu"] = importFormula<elu>;
  table["Celu"] = importFormula<celu>;
  table["Selu"] = importFormula<selu>;
  table["HardSigmoid"] = importFormula<hardSigmoid>;
  table["HardSwish"] = importFormula<hardSwish>;
  table["Swish"] = importFormula<swish>;
  table["Mish"] = importFormula<mish>;
  table["Softplus"] = importFormula<softplusOf>;
  table["Softsign"] = importFormula<softsign>;
  table["Shrink"] = importShrink;
  table["Gelu"] = importGelu;
  table["Clip"] = importClip;
}

} // namespace par
