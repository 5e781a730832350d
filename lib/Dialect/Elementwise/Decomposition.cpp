#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Term.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace par {
namespace {

/// sqrt(2 / pi) and the cubic coefficient of the tanh approximation.
constexpr double slope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;

/// Phi(x), or its approximation.
Term cumulativeNormal(Term x, bool approximate) {
  if (approximate)
    return 0.5 * (1.0 + tanh(slope * (x + cubic * (x * x * x))));
  return 0.5 * (1.0 + erf(x * (1 / std::numbers::sqrt2)));
}

struct GeluDecomposition : DecomposableOpInterface::ExternalModel<GeluDecomposition, GeluOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto gelu = cast<GeluOp>(op);
    Term x(builder, op->getLoc(), gelu.getOperand());
    return {x * cumulativeNormal(x, gelu.getTanh())};
  }
};

/// ct (Phi(x) + x Phi'(x)).
struct GeluGradDecomposition : DecomposableOpInterface::ExternalModel<GeluGradDecomposition, GeluGradOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto gelu = cast<GeluGradOp>(op);
    Term x(builder, op->getLoc(), gelu.getOperand()), ct = x.with(gelu.getCotangent());
    Term square = x * x;
    if (!gelu.getTanh()) {
      Term density = exp(square * -0.5) * (0.5 * slope);
      return {ct * (cumulativeNormal(x, false) + x * density)};
    }
    Term t = tanh(slope * (x + cubic * (square * x)));
    Term density = 0.5 * slope * (1.0 - t * t) * (1.0 + 3 * cubic * square);
    return {ct * (0.5 * (1.0 + t) + x * density)};
  }
};

} // namespace

void registerElementwiseDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<GeluOp, GeluDecomposition>(*context);
    attachOnce<GeluGradOp, GeluGradDecomposition>(*context);
  });
}

} // namespace par
