#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

/// Visits the elements that an update changes: their places in the weight and in the gradient.
template <typename Op, typename Visit>
LogicalResult visitUpdated(Op op, ArrayRef<Tensor> operands, Visit visit) {
  int64_t many = operands[1].getSize();
  if (!op.getRows()) {
    for (int64_t i = 0; i < many; ++i)
      visit(i, i);
    return success();
  }
  ArrayRef<int64_t> shape = operands[0].getShape();
  int64_t width = operands[0].getSize() / std::max<int64_t>(shape.front(), 1);
  for (auto [place, row] : llvm::enumerate(operands.back().ints())) {
    if (row >= shape.front())
      return op.emitError() << "row " << row << " is out of range [0, " << shape.front() << ")";
    for (int64_t i = 0; row >= 0 && i < width; ++i)
      visit(row * width + i, place * width + i);
  }
  return success();
}

struct SgdInterpreter : InterpretableOpInterface::ExternalModel<SgdInterpreter, SgdOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<SgdOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), lr = operands[2].floats()[0];
    Tensor weight = operands[0];
    auto w = weight.mutableFloats();
    auto g = operands[1].floats();
    if (failed(visitUpdated(update, operands, [&](int64_t i, int64_t k) { w[i] -= lr * (g[k] + decay * w[i]); })))
      return failure();
    return SmallVector<Tensor>{weight};
  }
};

struct MomentumInterpreter : InterpretableOpInterface::ExternalModel<MomentumInterpreter, MomentumOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<MomentumOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), mu = update.getMomentum().convertToDouble();
    double lr = operands[4].floats()[0];
    Tensor weight = operands[0], velocity = operands[2];
    auto w = weight.mutableFloats(), v = velocity.mutableFloats();
    auto g = operands[1].floats();
    auto change = [&](int64_t i, int64_t k) {
      double d = g[k] + decay * w[i];
      v[i] = mu * v[i] + d;
      w[i] -= lr * (update.getNesterov() ? d + mu * v[i] : v[i]);
    };
    if (failed(visitUpdated(update, operands, change)))
      return failure();
    return SmallVector<Tensor>{weight, velocity};
  }
};

struct AdamwInterpreter : InterpretableOpInterface::ExternalModel<AdamwInterpreter, AdamwOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<AdamwOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), beta1 = update.getBeta1().convertToDouble(),
           beta2 = update.getBeta2().convertToDouble(), epsilon = update.getEpsilon().convertToDouble();
    double step = operands[4].floats()[0], lr = operands[5].floats()[0];
    double correction1 = 1 - std::pow(beta1, step), correction2 = std::sqrt(1 - std::pow(beta2, step));
    Tensor weight = operands[0], first = operands[2], second = operands[3];
    auto w = weight.mutableFloats(), m = first.mutableFloats(), v = second.mutableFloats();
    auto g = operands[1].floats();
    auto change = [&](int64_t i, int64_t k) {
      w[i] *= 1 - lr * decay;
      m[i] = beta1 * m[i] + (1 - beta1) * g[k];
      v[i] = beta2 * v[i] + (1 - beta2) * g[k] * g[k];
      w[i] -= lr / correction1 * m[i] / (std::sqrt(v[i]) / correction2 + epsilon);
    };
    if (failed(visitUpdated(update, operands, change)))
      return failure();
    return SmallVector<Tensor>{weight, first, second};
  }
};

} // namespace

void registerOptimizerInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, SgdInterpreter>(*context);
    attachOnce<MomentumOp, MomentumInterpreter>(*context);
    attachOnce<AdamwOp, AdamwInterpreter>(*context);
  });
}

} // namespace par
