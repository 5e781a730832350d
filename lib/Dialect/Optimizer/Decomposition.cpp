#include "par/Dialect/Attach.h"
#include "par/Dialect/Term.h"
#include "par/Interfaces/Decomposable.h"

using namespace mlir;

namespace par {
namespace {

/// The operands of an update of one parameter, as terms of the weight's type.
struct Update {
  template <typename Op>
  Update(Op op, OpBuilder &builder)
      : weight(builder, op.getLoc(), op.getWeight()),
        gradient(weight.with(op.getGradient()).convert(weight.getType().getElementType())),
        lr(scalar(op.getLr())), decay(op.getWeightDecay().convertToDouble()) {}

  /// A scalar operand in the weight's element type.
  Term scalar(Value value) const { return weight.with(value).convert(weight.getType().getElementType()); }
  Term spread(Term value) const { return value.broadcast(weight.getShape()); }
  /// g + weight_decay w.
  Term decayed() const { return decay == 0 ? gradient : gradient + weight * decay; }

  Term weight, gradient, lr;
  double decay;
};

struct SgdDecomposition : DecomposableOpInterface::ExternalModel<SgdDecomposition, SgdOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    Update update(cast<SgdOp>(op), builder);
    return {update.weight - update.spread(update.lr) * update.decayed()};
  }
};

struct MomentumDecomposition : DecomposableOpInterface::ExternalModel<MomentumDecomposition, MomentumOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto momentum = cast<MomentumOp>(op);
    Update update(momentum, builder);
    double mu = momentum.getMomentum().convertToDouble();
    Type stored = getElementTypeOrSelf(momentum.getVelocity().getType());
    Term d = update.decayed();
    Term velocity = mu * d.with(momentum.getVelocity()).convert(update.weight.getType().getElementType()) + d;
    Term direction = momentum.getNesterov() ? d + mu * velocity : velocity;
    return {update.weight - update.spread(update.lr) * direction, velocity.convert(stored)};
  }
};

struct AdamwDecomposition : DecomposableOpInterface::ExternalModel<AdamwDecomposition, AdamwOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto adamw = cast<AdamwOp>(op);
    Update update(adamw, builder);
    double beta1 = adamw.getBeta1().convertToDouble(), beta2 = adamw.getBeta2().convertToDouble();
    Type element = update.weight.getType().getElementType();
    Type stored = getElementTypeOrSelf(adamw.getFirst().getType());
    Term g = update.gradient, lr = update.lr, step = update.scalar(adamw.getStep());
    Term first = beta1 * g.with(adamw.getFirst()).convert(element) + (1 - beta1) * g;
    Term second = beta2 * g.with(adamw.getSecond()).convert(element) + (1 - beta2) * (g * g);
    Term size = lr / (1.0 - power(step.splat(beta1), step));
    Term root = sqrt(1.0 - power(step.splat(beta2), step));
    Term weight = update.weight * update.spread(1.0 - lr * update.decay);
    Term moved =
        weight - update.spread(size) *
                     (first / (sqrt(second) / update.spread(root) + adamw.getEpsilon().convertToDouble()));
    return {moved, first.convert(stored), second.convert(stored)};
  }
};

} // namespace

void registerOptimizerDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, SgdDecomposition>(*context);
    attachOnce<MomentumOp, MomentumDecomposition>(*context);
    attachOnce<AdamwOp, AdamwDecomposition>(*context);
  });
}

} // namespace par
