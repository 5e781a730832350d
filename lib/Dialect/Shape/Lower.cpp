// Lowers constants and shape ops to linalg.generic. Ops that only move elements differ in their indexing map; pad,
// concat and update_slice choose by comparisons of the index and read only the chosen operand.
#include "par/Dialect/Lower.h"
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace par {
namespace {

/// Yields the one input's element: ops that only move elements differ in the map.
Value buildMove(OpBuilder &builder, Location loc, RankedTensorType type, Value operand, ArrayRef<AffineExpr> from) {
  AffineMap map = AffineMap::get(type.getRank(), 0, from, builder.getContext());
  return buildElements(builder, loc, type, operand, map,
                       [](OpBuilder &, Location, ValueRange args) { return args[0]; });
}

/// The scalar tensor's value as an index.
Value buildStart(OpBuilder &builder, Location loc, Value start) {
  Value value = tensor::ExtractOp::create(builder, loc, start, ValueRange());
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
}

/// `then` if the condition holds, else `otherwise`; the other one is not read.
Value buildChoice(OpBuilder &builder, Location loc, Value condition, function_ref<Value(OpBuilder &)> then,
                  function_ref<Value(OpBuilder &)> otherwise) {
  auto yield = [](function_ref<Value(OpBuilder &)> build) {
    return [build](OpBuilder &nested, Location loc) { scf::YieldOp::create(nested, loc, build(nested)); };
  };
  return scf::IfOp::create(builder, loc, condition, yield(then), yield(otherwise)).getResult(0);
}

/// low <= index < high.
Value buildInside(OpBuilder &builder, Location loc, Value index, Value low, Value high) {
  Value above = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, index, low);
  Value below = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, index, high);
  return arith::AndIOp::create(builder, loc, above, below);
}

SmallVector<Value> buildIndices(OpBuilder &builder, Location loc, int64_t rank) {
  SmallVector<Value> indices;
  for (int64_t dim = 0; dim < rank; ++dim)
    indices.push_back(buildIndex(builder, loc, dim));
  return indices;
}

struct ConstantLowering : LowerableOpInterface::ExternalModel<ConstantLowering, ConstantOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange) const {
    return SmallVector<Value>{
        arith::ConstantOp::create(builder, op->getLoc(), cast<TypedAttr>(cast<ConstantOp>(op).getValue()))};
  }
};

struct IotaLowering : LowerableOpInterface::ExternalModel<IotaLowering, IotaOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange) const {
    auto iota = cast<IotaOp>(op);
    Type element = iota.getResult().getType().getElementType();
    auto body = [&](OpBuilder &nested, Location loc, ValueRange) -> Value {
      Type integer = isa<FloatType>(element) ? nested.getI64Type() : element;
      Value index = arith::IndexCastOp::create(nested, loc, integer, buildIndex(nested, loc, iota.getDim()));
      if (isa<FloatType>(element))
        return arith::SIToFPOp::create(nested, loc, element, index);
      return index;
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), typeOf(iota.getResult()), {}, {}, body)};
  }
};

struct BroadcastLowering : LowerableOpInterface::ExternalModel<BroadcastLowering, BroadcastInDimOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto broadcast = cast<BroadcastInDimOp>(op);
    RankedTensorType from = typeOf(operands[0]), to = typeOf(broadcast.getResult());
    SmallVector<AffineExpr> exprs;
    for (auto [size, dim] : llvm::zip(from.getShape(), broadcast.getDims()))
      exprs.push_back(size == 1 && to.getDimSize(dim) != 1 ? builder.getAffineConstantExpr(0)
                                                           : builder.getAffineDimExpr(dim));
    return SmallVector<Value>{buildMove(builder, op->getLoc(), to, operands[0], exprs)};
  }
};

struct ReshapeLowering : LowerableOpInterface::ExternalModel<ReshapeLowering, ReshapeOp> {
  /// Through one dim, row-major: the collapse and the expansion are both views.
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Value value = operands[0];
    auto to = typeOf(op->getResult(0));
    int64_t fromRank = typeOf(value).getRank(), toRank = to.getRank();
    auto group = [](int64_t rank) {
      return SmallVector<ReassociationIndices>{llvm::to_vector<2>(llvm::seq<int64_t>(0, rank))};
    };
    if (toRank == 0 && fromRank == 0)
      return SmallVector<Value>{value};
    if (toRank == 0)
      return SmallVector<Value>{
          tensor::CollapseShapeOp::create(builder, op->getLoc(), to, value, ArrayRef<ReassociationIndices>())};
    if (fromRank == 0)
      return SmallVector<Value>{
          tensor::ExpandShapeOp::create(builder, op->getLoc(), to, value, ArrayRef<ReassociationIndices>())};
    if (fromRank != 1) {
      auto flat = RankedTensorType::get({to.getNumElements()}, to.getElementType());
      value = tensor::CollapseShapeOp::create(builder, op->getLoc(), flat, value, group(fromRank));
    }
    if (toRank != 1)
      value = tensor::ExpandShapeOp::create(builder, op->getLoc(), to, value, group(toRank));
    return SmallVector<Value>{value};
  }
};

struct TransposeLowering : LowerableOpInterface::ExternalModel<TransposeLowering, TransposeOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto transpose = cast<TransposeOp>(op);
    SmallVector<AffineExpr> exprs(transpose.getPermutation().size());
    for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
      exprs[from] = builder.getAffineDimExpr(dim);
    return SmallVector<Value>{buildMove(builder, op->getLoc(), typeOf(transpose.getResult()), operands[0], exprs)};
  }
};

struct SliceLowering : LowerableOpInterface::ExternalModel<SliceLowering, SliceOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto slice = cast<SliceOp>(op);
    SmallVector<AffineExpr> exprs;
    for (auto [dim, start] : llvm::enumerate(slice.getStarts()))
      exprs.push_back(builder.getAffineDimExpr(dim) * slice.getStrides()[dim] + start);
    return SmallVector<Value>{buildMove(builder, op->getLoc(), typeOf(slice.getResult()), operands[0], exprs)};
  }
};

struct ReverseLowering : LowerableOpInterface::ExternalModel<ReverseLowering, ReverseOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto reverse = cast<ReverseOp>(op);
    RankedTensorType type = typeOf(reverse.getResult());
    SmallVector<AffineExpr> exprs;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      exprs.push_back(llvm::is_contained(reverse.getDims(), dim)
                          ? type.getDimSize(dim) - 1 - builder.getAffineDimExpr(dim)
                          : builder.getAffineDimExpr(dim));
    return SmallVector<Value>{buildMove(builder, op->getLoc(), type, operands[0], exprs)};
  }
};

struct DynamicSliceLowering : LowerableOpInterface::ExternalModel<DynamicSliceLowering, DynamicSliceOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto slice = cast<DynamicSliceOp>(op);
    RankedTensorType to = typeOf(slice.getResult());
    auto body = [&](OpBuilder &nested, Location loc, ValueRange) -> Value {
      SmallVector<Value> indices = buildIndices(nested, loc, to.getRank());
      Value &along = indices[slice.getDim()];
      along = arith::AddIOp::create(nested, loc, along, buildStart(nested, loc, operands[1]));
      return tensor::ExtractOp::create(nested, loc, operands[0], indices);
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), to, {}, {}, body)};
  }
};

struct UpdateSliceLowering : LowerableOpInterface::ExternalModel<UpdateSliceLowering, UpdateSliceOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto update = cast<UpdateSliceOp>(op);
    RankedTensorType type = typeOf(update.getResult());
    int64_t dim = update.getDim(), size = typeOf(operands[1]).getDimSize(dim);
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
      SmallVector<Value> indices = buildIndices(nested, loc, type.getRank());
      Value start = buildStart(nested, loc, operands[2]);
      Value offset = arith::SubIOp::create(nested, loc, indices[dim], start);
      Value inside =
          buildInside(nested, loc, offset, buildIndexConstant(nested, loc, 0), buildIndexConstant(nested, loc, size));
      indices[dim] = offset;
      return buildChoice(
          nested, loc, inside,
          [&](OpBuilder &then) { return tensor::ExtractOp::create(then, loc, operands[1], indices); },
          [&](OpBuilder &) { return args[0]; });
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), type, operands[0], body)};
  }
};

struct PadLowering : LowerableOpInterface::ExternalModel<PadLowering, PadOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto pad = cast<PadOp>(op);
    RankedTensorType from = typeOf(operands[0]), to = typeOf(pad.getResult());
    auto body = [&](OpBuilder &nested, Location loc, ValueRange) -> Value {
      SmallVector<Value> indices = buildIndices(nested, loc, to.getRank());
      Value value = arith::ConstantOp::create(nested, loc, pad.getValue());
      Value inside;
      for (auto [dim, size] : llvm::enumerate(from.getShape())) {
        if (to.getDimSize(dim) == size)
          continue;
        int64_t low = pad.getLow()[dim];
        Value here = buildInside(nested, loc, indices[dim], buildIndexConstant(nested, loc, low),
                                 buildIndexConstant(nested, loc, low + size));
        inside = inside ? arith::AndIOp::create(nested, loc, inside, here).getResult() : here;
        indices[dim] = arith::SubIOp::create(nested, loc, indices[dim], buildIndexConstant(nested, loc, low));
      }
      auto read = [&](OpBuilder &then) -> Value { return tensor::ExtractOp::create(then, loc, operands[0], indices); };
      if (!inside)
        return read(nested);
      return buildChoice(nested, loc, inside, read, [&](OpBuilder &) { return value; });
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), to, {}, {}, body)};
  }
};

/// The element at `indices` of the inputs joined along `dim`; the first of them begins at `start`. A binary search:
/// nesting one choice per input would be as deep as there are inputs.
Value choosePart(OpBuilder &builder, Location loc, ValueRange inputs, ArrayRef<Value> indices, int64_t dim,
                 int64_t start) {
  if (inputs.size() == 1) {
    SmallVector<Value> shifted(indices);
    shifted[dim] = arith::SubIOp::create(builder, loc, indices[dim], buildIndexConstant(builder, loc, start));
    return tensor::ExtractOp::create(builder, loc, inputs.front(), shifted);
  }
  size_t half = inputs.size() / 2;
  int64_t end = start;
  for (Value input : inputs.take_front(half))
    end += typeOf(input).getDimSize(dim);
  Value here = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, indices[dim],
                                     buildIndexConstant(builder, loc, end));
  return buildChoice(
      builder, loc, here,
      [&](OpBuilder &then) { return choosePart(then, loc, inputs.take_front(half), indices, dim, start); },
      [&](OpBuilder &otherwise) { return choosePart(otherwise, loc, inputs.drop_front(half), indices, dim, end); });
}

struct ConcatLowering : LowerableOpInterface::ExternalModel<ConcatLowering, ConcatOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto concat = cast<ConcatOp>(op);
    RankedTensorType type = typeOf(concat.getResult());
    int64_t dim = concat.getDim();
    auto body = [&](OpBuilder &nested, Location loc, ValueRange) -> Value {
      SmallVector<Value> indices = buildIndices(nested, loc, type.getRank());
      return choosePart(nested, loc, operands, indices, dim, 0);
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), type, {}, {}, body)};
  }
};

} // namespace

void registerShapeLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConstantOp, ConstantLowering>(*context);
    attachOnce<IotaOp, IotaLowering>(*context);
    attachOnce<BroadcastInDimOp, BroadcastLowering>(*context);
    attachOnce<ReshapeOp, ReshapeLowering>(*context);
    attachOnce<TransposeOp, TransposeLowering>(*context);
    attachOnce<SliceOp, SliceLowering>(*context);
    attachOnce<DynamicSliceOp, DynamicSliceLowering>(*context);
    attachOnce<UpdateSliceOp, UpdateSliceLowering>(*context);
    attachOnce<ReverseOp, ReverseLowering>(*context);
    attachOnce<PadOp, PadLowering>(*context);
    attachOnce<ConcatOp, ConcatLowering>(*context);
  });
}

} // namespace par
