#include "Scores.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Decomposable.h"

using namespace mlir;

namespace par {
namespace {

struct AttentionDecomposition : DecomposableOpInterface::ExternalModel<AttentionDecomposition, AttentionOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    Scores attention(cast<AttentionOp>(op), builder);
    Term scores = attention.build();
    Term largest = scores.reduce(ReduceKind::max, 3);
    Term powers = exp(scores - attention.spread(largest));
    Term sum = powers.reduce(ReduceKind::sum, 3);
    return {attention.attend(powers / attention.spread(sum)), log(sum) + largest};
  }
};

struct AttentionGradDecomposition
    : DecomposableOpInterface::ExternalModel<AttentionGradDecomposition, AttentionGradOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto grad = cast<AttentionGradOp>(op);
    Scores attention(grad, builder);
    Term probabilities = attention.probabilities(grad.getLse());
    Term scores = attention.cotangent(probabilities, grad.getCotangent(), grad.getAttended());
    return {attention.ofQuery(scores), attention.ofKeys(attention.scaled(scores), grad.getQuery()),
            attention.ofKeys(probabilities, grad.getCotangent())};
  }
};

} // namespace

void registerAttentionDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<AttentionOp, AttentionDecomposition>(*context);
    attachOnce<AttentionGradOp, AttentionGradDecomposition>(*context);
  });
}

} // namespace par
