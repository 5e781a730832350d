// Gradients of shape ops: each is the shape op that undoes it, such as a sum for a broadcast, zero padding for a slice
// and slices for a concatenation.
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

using Cotangents = FailureOr<SmallVector<Value>>;

/// Elements [starts, starts + shape) of a term.
Term slice(Term term, ArrayRef<int64_t> starts, ArrayRef<int64_t> shape) {
  if (term.getShape() == shape)
    return term;
  SmallVector<int64_t> limits;
  for (auto [start, size] : llvm::zip(starts, shape))
    limits.push_back(start + size);
  SmallVector<int64_t> strides(shape.size(), 1);
  return term.with(SliceOp::create(term.getBuilder(), term.getLoc(), term, starts, limits, strides));
}

/// Zeros around a term.
Term pad(Term term, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  auto isZero = [](int64_t count) { return count == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return term;
  OpBuilder &builder = term.getBuilder();
  TypedAttr zero = builder.getZeroAttr(term.getType().getElementType());
  return term.with(PadOp::create(builder, term.getLoc(), term, low, high, zero));
}

/// Puts `stride - 1` zeros after every element along `dim`.
Term spread(Term term, int64_t dim, int64_t stride) {
  SmallVector<int64_t> shape(term.getShape()), wide = shape;
  shape.insert(shape.begin() + dim + 1, 1);
  wide[dim] *= stride;
  SmallVector<int64_t> low(shape.size(), 0), high(shape.size(), 0);
  high[dim + 1] = stride - 1;
  return pad(term.reshape(shape), low, high).reshape(wide);
}

struct BroadcastGradient : DifferentiableOpInterface::ExternalModel<BroadcastGradient, BroadcastInDimOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto broadcast = cast<BroadcastInDimOp>(op);
    ArrayRef<int64_t> from = shapeOf(broadcast.getOperand());
    SmallVector<int64_t> kept;
    for (auto [size, dim] : llvm::zip(from, broadcast.getDims()))
      if (size == shapeOf(broadcast.getResult())[dim])
        kept.push_back(dim);
    Term ct(builder, op->getLoc(), cotangents.front());
    Term sum = ct.reduce(ReduceKind::sum, otherDims(ct.getType().getRank(), kept));
    return SmallVector<Value>{sum.reshape(from)};
  }
};

struct ReshapeGradient : DifferentiableOpInterface::ExternalModel<ReshapeGradient, ReshapeOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    return SmallVector<Value>{buildReshape(builder, op->getLoc(), cotangents.front(), shapeOf(op->getOperand(0)))};
  }
};

struct TransposeGradient : DifferentiableOpInterface::ExternalModel<TransposeGradient, TransposeOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    ArrayRef<int64_t> permutation = cast<TransposeOp>(op).getPermutation();
    SmallVector<int64_t> inverse(permutation.size());
    for (auto [i, dim] : llvm::enumerate(permutation))
      inverse[dim] = i;
    return SmallVector<Value>{Term(builder, op->getLoc(), cotangents.front()).transpose(inverse)};
  }
};

struct SliceGradient : DifferentiableOpInterface::ExternalModel<SliceGradient, SliceOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto slice = cast<SliceOp>(op);
    ArrayRef<int64_t> whole = shapeOf(slice.getOperand());
    Term ct(builder, op->getLoc(), cotangents.front());
    for (auto [dim, stride] : llvm::enumerate(slice.getStrides()))
      if (stride > 1)
        ct = spread(ct, dim, stride);
    // The zeros after the last element may reach past the end.
    SmallVector<int64_t> inside(ct.getShape()), high, none(whole.size(), 0);
    for (auto [i, start] : llvm::enumerate(slice.getStarts())) {
      inside[i] = std::min(inside[i], whole[i] - start);
      high.push_back(whole[i] - start - inside[i]);
    }
    return SmallVector<Value>{pad(par::slice(ct, none, inside), slice.getStarts(), high)};
  }
};

struct ReverseGradient : DifferentiableOpInterface::ExternalModel<ReverseGradient, ReverseOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    return SmallVector<Value>{
        ReverseOp::create(builder, op->getLoc(), cotangents.front(), cast<ReverseOp>(op).getDims())};
  }
};

struct PadGradient : DifferentiableOpInterface::ExternalModel<PadGradient, PadOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto pad = cast<PadOp>(op);
    Term ct(builder, op->getLoc(), cotangents.front());
    return SmallVector<Value>{slice(ct, pad.getLow(), shapeOf(pad.getOperand()))};
  }
};

struct ConcatGradient : DifferentiableOpInterface::ExternalModel<ConcatGradient, ConcatOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    int64_t dim = cast<ConcatOp>(op).getDim();
    Term ct(builder, op->getLoc(), cotangents.front());
    SmallVector<int64_t> starts(ct.getShape().size(), 0);
    SmallVector<Value> parts;
    for (Value input : op->getOperands()) {
      parts.push_back(slice(ct, starts, shapeOf(input)));
      starts[dim] += shapeOf(input)[dim];
    }
    return parts;
  }
};

struct DynamicSliceGradient : DifferentiableOpInterface::ExternalModel<DynamicSliceGradient, DynamicSliceOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto slice = cast<DynamicSliceOp>(op);
    Term zero = Term(builder, op->getLoc(), slice.getOperand()).splat(0);
    Value ct = UpdateSliceOp::create(builder, op->getLoc(), zero.getType(), zero, cotangents.front(), slice.getStart(),
                                     slice.getDim());
    return SmallVector<Value>{ct, Value()};
  }
};

struct UpdateSliceGradient : DifferentiableOpInterface::ExternalModel<UpdateSliceGradient, UpdateSliceOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto update = cast<UpdateSliceOp>(op);
    Term ct(builder, op->getLoc(), cotangents.front()), zero = ct.with(update.getUpdate()).splat(0);
    int64_t dim = update.getDim();
    Value rest = UpdateSliceOp::create(builder, op->getLoc(), ct.getType(), ct, zero, update.getStart(), dim);
    Value part = DynamicSliceOp::create(builder, op->getLoc(), ct, update.getStart(), dim, zero.getShape()[dim]);
    return SmallVector<Value>{rest, part, Value()};
  }
};

} // namespace

void registerShapeGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<BroadcastInDimOp, BroadcastGradient>(*context);
    attachOnce<ReshapeOp, ReshapeGradient>(*context);
    attachOnce<TransposeOp, TransposeGradient>(*context);
    attachOnce<SliceOp, SliceGradient>(*context);
    attachOnce<ReverseOp, ReverseGradient>(*context);
    attachOnce<PadOp, PadGradient>(*context);
    attachOnce<ConcatOp, ConcatGradient>(*context);
    attachOnce<DynamicSliceOp, DynamicSliceGradient>(*context);
    attachOnce<UpdateSliceOp, UpdateSliceGradient>(*context);
  });
}

} // namespace par
