#include "par/Dialect/Lower.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace par {
namespace {

/// What changes nothing when combined.
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
  if (kind == ReduceKind::band)
    value = APInt::getAllOnes(width);
  if (kind == ReduceKind::product)
    value = APInt(width, 1);
  return builder.getIntegerAttr(type, value);
}

Value combine(OpBuilder &builder, Location loc, ReduceKind kind, Value x, Value y) {
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
  case ReduceKind::band:
    return arith::AndIOp::create(builder, loc, x, y);
  case ReduceKind::bor:
    return arith::OrIOp::create(builder, loc, x, y);
  }
  return {};
}

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
      return combine(nested, loc, reduce.getKind(), args[1], args[0]);
    };
    return SmallVector<Value>{buildReduction(
        builder, op->getLoc(), type, getNeutral(builder, reduce.getKind(), type.getElementType()), operands,
        builder.getMultiDimIdentityMap(rank), resultMap, body)};
  }
};

} // namespace

void registerReduceLowerings(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, ParDialect *) { ReduceOp::attachInterface<ReduceLowering>(*context); });
}

} // namespace par
