#include "Scores.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"

using namespace mlir;

namespace par {
namespace {

struct AttentionGradient : DifferentiableOpInterface::ExternalModel<AttentionGradient, AttentionOp> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto attention = cast<AttentionOp>(op);
    Value ct = cotangents[0], mask = attention.getMask();
    if (!ct || cotangents[1])
      return failure(); // lse is there for the gradient; nothing else uses it
    auto grad = AttentionGradOp::create(
        builder, op->getLoc(), attention.getQuery().getType(), attention.getKey().getType(),
        attention.getValue().getType(), ct, attention.getQuery(), attention.getKey(), attention.getValue(),
        attention.getResult(), attention.getLse(), mask, attention.getScaleAttr(), attention.getCausalAttr());
    SmallVector<Value> parts{grad.getQueryCotangent(), grad.getKeyCotangent(), grad.getValueCotangent()};
    if (!mask)
      return parts;
    // A mask is seldom learned: what is built for it is dead then.
    Scores scores(attention, builder);
    parts.push_back(
        scores.ofMask(scores.cotangent(scores.probabilities(attention.getLse()), ct, attention.getResult())));
    return parts;
  }
};

} // namespace

void registerAttentionGradients(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, ParDialect *) { attachOnce<AttentionOp, AttentionGradient>(*context); });
}

} // namespace par
