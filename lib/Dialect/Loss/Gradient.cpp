#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

struct CrossEntropyGradient : DifferentiableOpInterface::ExternalModel<CrossEntropyGradient, CrossEntropyOp> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto loss = cast<CrossEntropyOp>(op);
    Term logits(builder, op->getLoc(), loss.getLogits());
    Value sum;
    if (Value ct = cotangents[0])
      sum = CrossEntropyGradOp::create(builder, op->getLoc(), logits.getType(), ct, logits, loss.getLabels(),
                                       loss.getLse(), loss.getIgnore());
    if (Value ct = cotangents[1]) { // of log(sum e^z): ct softmax(z)
      SmallVector<int64_t> tokens = dimRange(0, logits.getType().getRank() - 1);
      auto spread = [&](Value value) { return logits.with(value).broadcast(tokens, logits.getShape()); };
      Term wide = logits.convert(getElementTypeOrSelf(ct.getType())); // of narrow logits the losses are f32
      Term part = (spread(ct) * exp(wide - spread(loss.getLse()))).convert(logits.getType().getElementType());
      sum = sum ? Value(logits.with(sum) + part) : Value(part);
    }
    return SmallVector<Value>{sum, Value()};
  }
};

} // namespace

void registerLossGradients(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, ParDialect *) { attachOnce<CrossEntropyOp, CrossEntropyGradient>(*context); });
}

} // namespace par
