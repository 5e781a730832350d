#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

/// The format in which composites compute on elements of a type: f32 at least.
Type computedIn(Type element) {
  return element.getIntOrFloatBitWidth() < 32 ? Type(Float32Type::get(element.getContext())) : element;
}

struct SoftmaxDecomposition : DecomposableOpInterface::ExternalModel<SoftmaxDecomposition, SoftmaxOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto softmax = cast<SoftmaxOp>(op);
    auto dim = static_cast<int64_t>(softmax.getDim());
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    Term x = Term(builder, op->getLoc(), op->getOperand(0)).convert(computedIn(element));
    Term e = exp(x - x.reduceKeeping(ReduceKind::max, dim));
    Term y = e / e.reduceKeeping(ReduceKind::sum, dim);
    if (softmax.getSafe())
      y = y.with(IsNanOp::create(builder, op->getLoc(), y)).select(y.splat(0), y);
    return {y.convert(element)};
  }
};

struct SoftmaxGradDecomposition : DecomposableOpInterface::ExternalModel<SoftmaxGradDecomposition, SoftmaxGradOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto grad = cast<SoftmaxGradOp>(op);
    Type element = getElementTypeOrSelf(op->getResult(0).getType()), inner = computedIn(element);
    Term ct = Term(builder, op->getLoc(), grad.getCotangent()).convert(inner);
    Term y = ct.with(grad.getSoftmax()).convert(inner);
    Term sum = (ct * y).reduceKeeping(ReduceKind::sum, static_cast<int64_t>(grad.getDim()));
    return {(y * (ct - sum)).convert(element)};
  }
};

/// The dims of a layer norm: leading ones are positions, trailing ones are normalised over.
struct NormDims {
  NormDims(RankedTensorType type, RankedTensorType statistic)
      : shape(type.getShape()), leading(dimRange(0, statistic.getRank())),
        trailing(dimRange(statistic.getRank(), type.getRank())), element(statistic.getElementType()) {
    for (int64_t dim : trailing)
      count *= shape[dim];
  }
  /// A statistic, or a scale, at every element.
  Term spread(Term statistic) const { return statistic.broadcast(leading, shape); }
  Term spreadScale(Term scale) const { return scale.convert(element).broadcast(trailing, shape); }
  /// Mean over the trailing dims.
  Term mean(Term x) const { return x.reduce(ReduceKind::sum, trailing) / count; }

  SmallVector<int64_t> shape, leading, trailing;
  Type element; ///< in which the statistics are computed
  double count = 1;
};

struct LayerNormDecomposition : DecomposableOpInterface::ExternalModel<LayerNormDecomposition, LayerNormOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto norm = cast<LayerNormOp>(op);
    auto type = cast<RankedTensorType>(norm.getOperand().getType());
    NormDims dims(type, cast<RankedTensorType>(norm.getMean().getType()));
    Term x = Term(builder, op->getLoc(), norm.getOperand()).convert(dims.element);
    Term mean = dims.mean(x), centred = x - dims.spread(mean);
    Term rstd = rsqrt(dims.mean(centred * centred) + norm.getEpsilon().convertToDouble());
    Term scaled = centred * dims.spread(rstd) * dims.spreadScale(x.with(norm.getScale())) +
                  dims.spreadScale(x.with(norm.getBias()));
    return {scaled.convert(type.getElementType()), mean, rstd};
  }
};

struct LayerNormGradDecomposition
    : DecomposableOpInterface::ExternalModel<LayerNormGradDecomposition, LayerNormGradOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto norm = cast<LayerNormGradOp>(op);
    auto type = cast<RankedTensorType>(norm.getOperand().getType());
    NormDims dims(type, cast<RankedTensorType>(norm.getMean().getType()));
    Term x = Term(builder, op->getLoc(), norm.getOperand()).convert(dims.element);
    Term ct = x.with(norm.getCotangent()).convert(dims.element), rstd = dims.spread(x.with(norm.getRstd()));
    Term n = (x - dims.spread(x.with(norm.getMean()))) * rstd;
    Term g = ct * dims.spreadScale(x.with(norm.getScale()));
    Term result = rstd * (g - dims.spread(dims.mean(g)) - n * dims.spread(dims.mean(g * n)));
    return {result.convert(type.getElementType())};
  }
};

} // namespace

void registerNormDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SoftmaxOp, SoftmaxDecomposition>(*context);
    attachOnce<SoftmaxGradOp, SoftmaxGradDecomposition>(*context);
    attachOnce<LayerNormOp, LayerNormDecomposition>(*context);
    attachOnce<LayerNormGradOp, LayerNormGradDecomposition>(*context);
  });
}

} // namespace par
