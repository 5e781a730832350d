#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Term.h"
#include "par/Dialect/Windows.h"

using namespace mlir;

namespace par {
namespace {

using Cotangents = FailureOr<SmallVector<Value>>;

/// One of the three convolution ops with another's windows: the three are each other's gradients.
template <typename Made, typename Op>
Value build(OpBuilder &builder, Op like, Value result, Value lhs, Value rhs) {
  Type element = getElementTypeOrSelf(result.getType());
  lhs = buildConvert(builder, like.getLoc(), lhs, element);
  rhs = buildConvert(builder, like.getLoc(), rhs, element);
  return Made::create(builder, like.getLoc(), result.getType(), lhs, rhs, like.getStrides(), like.getLow(),
                      like.getHigh(), like.getDilations(), like.getGroups());
}

struct ConvolutionGradient : DifferentiableOpInterface::ExternalModel<ConvolutionGradient, ConvolutionOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto made = cast<ConvolutionOp>(op);
    Value x = made.getOperand(), w = made.getFilter(), ct = cotangents.front();
    return SmallVector<Value>{build<ConvolutionInputGradOp>(builder, made, x, ct, w),
                              build<ConvolutionFilterGradOp>(builder, made, w, x, ct)};
  }
};

struct InputGradGradient : DifferentiableOpInterface::ExternalModel<InputGradGradient, ConvolutionInputGradOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto made = cast<ConvolutionInputGradOp>(op);
    Value y = made.getCotangent(), w = made.getFilter(), ct = cotangents.front();
    return SmallVector<Value>{build<ConvolutionOp>(builder, made, y, ct, w),
                              build<ConvolutionFilterGradOp>(builder, made, w, ct, y)};
  }
};

struct FilterGradGradient : DifferentiableOpInterface::ExternalModel<FilterGradGradient, ConvolutionFilterGradOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto made = cast<ConvolutionFilterGradOp>(op);
    Value x = made.getOperand(), y = made.getCotangent(), ct = cotangents.front();
    return SmallVector<Value>{build<ConvolutionInputGradOp>(builder, made, x, y, ct),
                              build<ConvolutionOp>(builder, made, y, x, ct)};
  }
};

struct PatchesGradient : DifferentiableOpInterface::ExternalModel<PatchesGradient, PatchesOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto made = cast<PatchesOp>(op);
    return SmallVector<Value>{FoldPatchesOp::create(builder, op->getLoc(), made.getOperand().getType(),
                                                    cotangents.front(), made.getStrides(), made.getLow(),
                                                    made.getHigh(), made.getDilations())};
  }
};

struct FoldPatchesGradient : DifferentiableOpInterface::ExternalModel<FoldPatchesGradient, FoldPatchesOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto made = cast<FoldPatchesOp>(op);
    auto type = cast<RankedTensorType>(made.getOperand().getType());
    ArrayRef<int64_t> window = type.getShape().take_back(made.getStrides().size());
    TypedAttr zero = builder.getZeroAttr(type.getElementType());
    return SmallVector<Value>{PatchesOp::create(builder, op->getLoc(), type, cotangents.front(), window,
                                                made.getStrides(), made.getLow(), made.getHigh(), made.getDilations(),
                                                zero)};
  }
};

struct MaxPoolGradient : DifferentiableOpInterface::ExternalModel<MaxPoolGradient, MaxPoolOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto made = cast<MaxPoolOp>(op);
    return SmallVector<Value>{MaxPoolGradOp::create(
        builder, op->getLoc(), made.getOperand().getType(), cotangents.front(), made.getOperand(), made.getResult(),
        made.getWindow(), made.getStrides(), made.getLow(), made.getHigh(), made.getDilations())};
  }
};

/// Linear in the cotangent, piecewise constant in the rest: the places that gave the largest elements, read again.
struct MaxPoolGradGradient : DifferentiableOpInterface::ExternalModel<MaxPoolGradGradient, MaxPoolGradOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto made = cast<MaxPoolGradOp>(op);
    Windows windows = Windows::of(made, made.getWindow());
    Term ct(builder, op->getLoc(), cotangents.front());
    Term first = ct.with(buildFirstLargest(builder, op->getLoc(), made.getOperand(), made.getLargest(), windows));
    TypedAttr zero = builder.getZeroAttr(ct.getType().getElementType());
    Term patches = ct.with(buildPatches(builder, op->getLoc(), ct, windows, zero)).reshape(first.getShape());
    Term picked = first.select(patches, patches.splat(0));
    return SmallVector<Value>{picked.reduce(ReduceKind::sum, int64_t(first.getShape().size()) - 1), Value(), Value()};
  }
};

} // namespace

void registerWindowGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConvolutionOp, ConvolutionGradient>(*context);
    attachOnce<ConvolutionInputGradOp, InputGradGradient>(*context);
    attachOnce<ConvolutionFilterGradOp, FilterGradGradient>(*context);
    attachOnce<PatchesOp, PatchesGradient>(*context);
    attachOnce<FoldPatchesOp, FoldPatchesGradient>(*context);
    attachOnce<MaxPoolOp, MaxPoolGradient>(*context);
    attachOnce<MaxPoolGradOp, MaxPoolGradGradient>(*context);
  });
}

} // namespace par
