#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

using Cotangents = FailureOr<SmallVector<Value>>;

struct SoftmaxGradient : DifferentiableOpInterface::ExternalModel<SoftmaxGradient, SoftmaxOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto softmax = cast<SoftmaxOp>(op);
    return SmallVector<Value>{
        SoftmaxGradOp::create(builder, op->getLoc(), cotangents.front(), softmax.getResult(), softmax.getDim())};
  }
};

struct LayerNormGradient : DifferentiableOpInterface::ExternalModel<LayerNormGradient, LayerNormOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto norm = cast<LayerNormOp>(op);
    if (!cotangents[0] || cotangents[1] || cotangents[2])
      return failure(); // mean and rstd are there for the gradient; nothing else uses them
    Term ct(builder, op->getLoc(), cotangents.front());
    Value input = LayerNormGradOp::create(builder, op->getLoc(), ct.getType(), ct, norm.getOperand(), norm.getScale(),
                                          norm.getMean(), norm.getRstd());
    ArrayRef<int64_t> shape = ct.getShape();
    auto statistic = cast<RankedTensorType>(norm.getMean().getType());
    SmallVector<int64_t> leading = dimRange(0, statistic.getRank());
    auto spread = [&](Value value) { return ct.with(value).broadcast(leading, shape); };
    // Sums over the batch in the format of the statistics, which is never a narrow one.
    Type element = statistic.getElementType(), own = getElementTypeOrSelf(norm.getScale().getType());
    Term wide = ct.convert(element), operand = ct.with(norm.getOperand()).convert(element);
    Term normed = (operand - spread(norm.getMean())) * spread(norm.getRstd());
    return SmallVector<Value>{input, (wide * normed).reduce(ReduceKind::sum, leading).convert(own),
                              wide.reduce(ReduceKind::sum, leading).convert(own)};
  }
};

} // namespace

void registerNormGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SoftmaxOp, SoftmaxGradient>(*context);
    attachOnce<LayerNormOp, LayerNormGradient>(*context);
  });
}

} // namespace par
