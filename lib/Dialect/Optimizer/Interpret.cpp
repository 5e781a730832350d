#include "par/Dialect/Attach.h"
#include "par/Interfaces/Interpretable.h"

#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

struct SgdMeaning : InterpretableOpInterface::ExternalModel<SgdMeaning, SgdOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    double decay = cast<SgdOp>(op).getWeightDecay().convertToDouble(), lr = operands[2].floats()[0];
    Tensor weight = operands[0];
    for (auto [w, g] : llvm::zip(weight.mutableFloats(), operands[1].floats()))
      w -= lr * (g + decay * w);
    return SmallVector<Tensor>{weight};
  }
};

struct MomentumMeaning : InterpretableOpInterface::ExternalModel<MomentumMeaning, MomentumOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<MomentumOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), mu = update.getMomentum().convertToDouble();
    double lr = operands[4].floats()[0];
    Tensor weight = operands[0], velocity = operands[2];
    for (auto [w, g, v] : llvm::zip(weight.mutableFloats(), operands[1].floats(), velocity.mutableFloats())) {
      double d = g + decay * w;
      v = mu * v + d;
      w -= lr * (update.getNesterov() ? d + mu * v : v);
    }
    return SmallVector<Tensor>{weight, velocity};
  }
};

struct AdamwMeaning : InterpretableOpInterface::ExternalModel<AdamwMeaning, AdamwOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto update = cast<AdamwOp>(op);
    double decay = update.getWeightDecay().convertToDouble(), beta1 = update.getBeta1().convertToDouble(),
           beta2 = update.getBeta2().convertToDouble(), epsilon = update.getEpsilon().convertToDouble();
    double step = operands[4].floats()[0], lr = operands[5].floats()[0];
    double correction1 = 1 - std::pow(beta1, step), correction2 = std::sqrt(1 - std::pow(beta2, step));
    Tensor weight = operands[0], first = operands[2], second = operands[3];
    for (auto [w, g, m, v] : llvm::zip(weight.mutableFloats(), operands[1].floats(), first.mutableFloats(),
                                       second.mutableFloats())) {
      w *= 1 - lr * decay;
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      w -= lr / correction1 * m / (std::sqrt(v) / correction2 + epsilon);
    }
    return SmallVector<Tensor>{weight, first, second};
  }
};

} // namespace

void registerOptimizerInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, SgdMeaning>(*context);
    attachOnce<MomentumOp, MomentumMeaning>(*context);
    attachOnce<AdamwOp, AdamwMeaning>(*context);
  });
}

} // namespace par
