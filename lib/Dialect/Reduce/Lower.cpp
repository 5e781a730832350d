// Lowers reductions, cumulative ops, arg-reductions and sorted positions to linalg.generic. The position of an element
// in a sort is the count of elements before it, with NaN largest and ties by index.
#include "par/Dialect/Lower.h"
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace par {

TypedAttr getNeutral(OpBuilder &builder, ReduceKind kind, Type type) {
  if (auto real = dyn_cast<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    double value = kind == ReduceKind::max ? -infinity : kind == ReduceKind::min ? infinity : 0;
    return builder.getFloatAttr(real, kind == ReduceKind::product ? 1 : value);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = APInt::getZero(width);
  if (kind == ReduceKind::max)
    value = width == 1 ? APInt::getZero(1) : APInt::getSignedMinValue(width);
  if (kind == ReduceKind::min)
    value = width == 1 ? APInt::getAllOnes(1) : APInt::getSignedMaxValue(width);
  if (kind == ReduceKind::bitAnd)
    value = APInt::getAllOnes(width);
  if (kind == ReduceKind::product)
    value = APInt(width, 1);
  return builder.getIntegerAttr(type, value);
}

Value buildCombination(OpBuilder &builder, Location loc, ReduceKind kind, Value x, Value y) {
  bool real = isa<FloatType>(x.getType()), boolean = x.getType().isInteger(1);
  switch (kind) {
  case ReduceKind::sum:
    return buildSum(builder, loc, x, y);
  case ReduceKind::product:
    return buildProduct(builder, loc, x, y);
  case ReduceKind::max:
    if (real)
      return arith::MaximumFOp::create(builder, loc, x, y);
    if (boolean)
      return arith::OrIOp::create(builder, loc, x, y);
    return arith::MaxSIOp::create(builder, loc, x, y);
  case ReduceKind::min:
    if (real)
      return arith::MinimumFOp::create(builder, loc, x, y);
    if (boolean)
      return arith::AndIOp::create(builder, loc, x, y);
    return arith::MinSIOp::create(builder, loc, x, y);
  case ReduceKind::bitAnd:
    return arith::AndIOp::create(builder, loc, x, y);
  case ReduceKind::bitOr:
    return arith::OrIOp::create(builder, loc, x, y);
  }
  return {};
}

namespace {

struct ReduceLowering : LowerableOpInterface::ExternalModel<ReduceLowering, ReduceOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto reduce = cast<ReduceOp>(op);
    auto type = cast<RankedTensorType>(reduce.getResult().getType());
    int64_t rank = cast<RankedTensorType>(operands[0].getType()).getRank();
    SmallVector<AffineExpr> kept;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!llvm::is_contained(reduce.getDims(), dim))
        kept.push_back(builder.getAffineDimExpr(dim));
    AffineMap resultMap = AffineMap::get(rank, 0, kept, builder.getContext());
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
      return buildCombination(nested, loc, reduce.getKind(), args[1], args[0]);
    };
    return SmallVector<Value>{buildReduction(builder, op->getLoc(), type,
                                             getNeutral(builder, reduce.getKind(), type.getElementType()), operands,
                                             builder.getMultiDimIdentityMap(rank), resultMap, body)};
  }
};

/// The iteration of a reduction along one dim: the result's dims, then the operand's own index along `dim`.
struct AlongMaps {
  AlongMaps(OpBuilder &builder, int64_t rank, int64_t dim)
      : own(AffineMap::getMultiDimIdentityMap(rank + 1, builder.getContext()).getMajorSubMap(rank)) {
    SmallVector<AffineExpr> exprs(own.getResults());
    exprs[dim] = builder.getAffineDimExpr(rank);
    along = AffineMap::get(rank + 1, 0, exprs, builder.getContext());
  }
  AffineMap own;   ///< the element that the result is for
  AffineMap along; ///< the element that it is compared with
};

struct CumulativeLowering : LowerableOpInterface::ExternalModel<CumulativeLowering, CumulativeOp> {
  /// Each element combines those that come before it: no order of loops to keep.
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto cumulative = cast<CumulativeOp>(op);
    RankedTensorType type = typeOf(cumulative.getResult());
    int64_t rank = type.getRank(), dim = cumulative.getDim();
    AlongMaps maps(builder, rank, dim);
    using P = arith::CmpIPredicate;
    P before = cumulative.getReverse() ? (cumulative.getExclusive() ? P::sgt : P::sge)
                                       : (cumulative.getExclusive() ? P::slt : P::sle);
    TypedAttr neutral = getNeutral(builder, cumulative.getKind(), type.getElementType());
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
      Value counts =
          arith::CmpIOp::create(nested, loc, before, buildIndex(nested, loc, rank), buildIndex(nested, loc, dim));
      Value part =
          arith::SelectOp::create(nested, loc, counts, args[0], arith::ConstantOp::create(nested, loc, neutral));
      return buildCombination(nested, loc, cumulative.getKind(), args[1], part);
    };
    return SmallVector<Value>{
        buildReduction(builder, op->getLoc(), type, neutral, operands, maps.along, maps.own, body)};
  }
};

/// a before b in rising order; NaN is largest.
Value buildLess(OpBuilder &builder, Location loc, Value a, Value b) {
  if (!isa<FloatType>(a.getType()))
    return arith::CmpIOp::create(
        builder, loc, a.getType().isInteger(1) ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, a, b);
  using F = arith::CmpFPredicate;
  Value less = arith::CmpFOp::create(builder, loc, F::OLT, a, b);
  Value number = arith::CmpFOp::create(builder, loc, F::ORD, a, a),
        none = arith::CmpFOp::create(builder, loc, F::UNO, b, b);
  return arith::OrIOp::create(builder, loc, less, arith::AndIOp::create(builder, loc, number, none));
}

struct SortedPositionLowering : LowerableOpInterface::ExternalModel<SortedPositionLowering, SortedPositionOp> {
  /// An element's position is the number of those that come before it.
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto sorted = cast<SortedPositionOp>(op);
    RankedTensorType type = typeOf(sorted.getResult());
    int64_t rank = type.getRank(), dim = sorted.getDim();
    AlongMaps maps(builder, rank, dim);
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
      Value own = args[0], other = args[1];
      Value smaller = buildLess(nested, loc, other, own), larger = buildLess(nested, loc, own, other);
      if (sorted.getDescending())
        std::swap(smaller, larger);
      Value earlier = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::slt, buildIndex(nested, loc, rank),
                                            buildIndex(nested, loc, dim));
      Value no = arith::ConstantOp::create(nested, loc, nested.getBoolAttr(false));
      Value before =
          arith::OrIOp::create(nested, loc, smaller, arith::SelectOp::create(nested, loc, larger, no, earlier));
      return arith::AddIOp::create(nested, loc, args[2],
                                   arith::ExtUIOp::create(nested, loc, nested.getI64Type(), before));
    };
    Value position = buildReduction(builder, op->getLoc(), type, builder.getI64IntegerAttr(0),
                                    {operands[0], operands[0]}, {maps.own, maps.along}, maps.own, body);
    position.getDefiningOp()->setDiscardableAttr(countsEarlier, builder.getUnitAttr());
    return SmallVector<Value>{position};
  }
};

struct ArgReduceLowering : LowerableOpInterface::ExternalModel<ArgReduceLowering, ArgReduceOp> {
  /// The extreme, then its smallest index; NaN is extreme.
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto reduce = cast<ArgReduceOp>(op);
    RankedTensorType from = typeOf(operands[0]), to = typeOf(reduce.getResult());
    int64_t rank = from.getRank(), dim = reduce.getDim();
    Type element = from.getElementType();
    AffineMap whole = builder.getMultiDimIdentityMap(rank), rest = whole.dropResult(dim);
    auto extreme = [&](OpBuilder &nested, Location loc, ValueRange args) {
      return buildCombination(nested, loc, reduce.getKind(), args[1], args[0]);
    };
    Value best = buildReduction(builder, op->getLoc(), to.clone(element),
                                getNeutral(builder, reduce.getKind(), element), operands, whole, rest, extreme);
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
      Value here =
          isa<FloatType>(element)
              ? arith::OrIOp::create(nested, loc,
                                     arith::CmpFOp::create(nested, loc, arith::CmpFPredicate::OEQ, args[0], args[1]),
                                     arith::CmpFOp::create(nested, loc, arith::CmpFPredicate::UNO, args[0], args[0]))
                    .getResult()
              : arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::eq, args[0], args[1]).getResult();
      Value index = arith::IndexCastOp::create(nested, loc, nested.getI64Type(), buildIndex(nested, loc, dim));
      // Not the minimum so far: a sum of one use is one that Codegen may keep in lanes.
      Value last = arith::ConstantIntOp::create(nested, loc, from.getDimSize(dim) - 1, 64);
      Value candidate = arith::SelectOp::create(nested, loc, here, index, last);
      return arith::MinSIOp::create(nested, loc, args[2], candidate);
    };
    return SmallVector<Value>{buildReduction(builder, op->getLoc(), to,
                                             builder.getI64IntegerAttr(from.getDimSize(dim) - 1), {operands[0], best},
                                             {whole, rest}, rest, body)};
  }
};

} // namespace

void registerReduceLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ReduceOp, ReduceLowering>(*context);
    attachOnce<CumulativeOp, CumulativeLowering>(*context);
    attachOnce<SortedPositionOp, SortedPositionLowering>(*context);
    attachOnce<ArgReduceOp, ArgReduceLowering>(*context);
  });
}

} // namespace par
