#include "par/Dialect/Lower.h"
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace par {
namespace {

Value toIndex(OpBuilder &builder, Location loc, Value value) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
}

/// The dims [first, last) of the iteration.
SmallVector<AffineExpr> dimExprs(OpBuilder &builder, int64_t first, int64_t last) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = first; dim < last; ++dim)
    exprs.push_back(builder.getAffineDimExpr(dim));
  return exprs;
}

struct GatherLowering : LowerableOpInterface::ExternalModel<GatherLowering, GatherOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto gather = cast<GatherOp>(op);
    RankedTensorType type = typeOf(gather.getResult());
    int64_t dim = gather.getDim(), indexRank = typeOf(operands[1]).getRank();
    AffineMap indexMap =
        AffineMap::get(type.getRank(), 0, dimExprs(builder, dim, dim + indexRank), builder.getContext());
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
      SmallVector<Value> indices;
      for (int64_t i = 0; i < typeOf(operands[0]).getRank(); ++i)
        indices.push_back(i == dim ? toIndex(nested, loc, args[0])
                                   : buildIndex(nested, loc, i < dim ? i : i + indexRank - 1));
      return tensor::ExtractOp::create(nested, loc, operands[0], indices);
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), type, operands[1], indexMap, body)};
  }
};

struct TakeLowering : LowerableOpInterface::ExternalModel<TakeLowering, TakeOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto take = cast<TakeOp>(op);
    RankedTensorType type = typeOf(take.getResult());
    auto body = [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
      SmallVector<Value> indices;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        indices.push_back(dim == static_cast<int64_t>(take.getDim()) ? toIndex(nested, loc, args[0])
                                                                     : buildIndex(nested, loc, dim));
      return tensor::ExtractOp::create(nested, loc, operands[0], indices);
    };
    return SmallVector<Value>{buildElements(builder, op->getLoc(), type, operands[1], body)};
  }
};

/// result[.., r, ..] = combination over i of (index i == r ? update i : neutral element). There is no order of stores
/// to keep, and the loop vectorises along the dims after `dim`. Large tables use the builtin.
Value buildOneHot(OpBuilder &builder, Location loc, RankedTensorType type, ValueRange operands, AffineMap updates,
                  AffineMap indices, AffineMap result, int64_t dim, ReduceKind kind = ReduceKind::sum) {
  TypedAttr neutral = getNeutral(builder, kind, type.getElementType());
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
    Value row = buildIndex(nested, loc, dim);
    Value here = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::eq, toIndex(nested, loc, args[1]), row);
    Value part = arith::SelectOp::create(nested, loc, here, args[0], arith::ConstantOp::create(nested, loc, neutral));
    return buildCombination(nested, loc, kind, args[2], part);
  };
  return buildReduction(builder, loc, type, neutral, operands, {updates, indices}, result, body);
}

struct IndexAddLowering : LowerableOpInterface::ExternalModel<IndexAddLowering, IndexAddOp> {
  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto scatter = cast<IndexAddOp>(op);
    RankedTensorType type = typeOf(scatter.getResult());
    int64_t rank = type.getRank(), dim = scatter.getDim(), indexRank = typeOf(operands[1]).getRank();
    // Loops: the result's dims, then those of the indices.
    SmallVector<AffineExpr> index = dimExprs(builder, rank, rank + indexRank), update = dimExprs(builder, 0, dim);
    llvm::append_range(update, index);
    llvm::append_range(update, dimExprs(builder, dim + 1, rank));
    auto map = [&](ArrayRef<AffineExpr> exprs) {
      return AffineMap::get(rank + indexRank, 0, exprs, builder.getContext());
    };
    return SmallVector<Value>{buildOneHot(builder, op->getLoc(), type, operands, map(update), map(index),
                                          map(dimExprs(builder, 0, rank)), dim)};
  }
};

/// Both scatter ops.
template <typename Op>
struct PutLowering : LowerableOpInterface::ExternalModel<PutLowering<Op>, Op> {
  static ReduceKind kindOf(ScatterAddOp) { return ReduceKind::sum; }
  static ReduceKind kindOf(ScatterReduceOp put) { return put.getKind(); }

  Lowered lower(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto put = cast<Op>(op);
    RankedTensorType type = typeOf(put.getResult());
    int64_t rank = type.getRank(), dim = put.getDim();
    SmallVector<AffineExpr> update = dimExprs(builder, 0, rank);
    update[dim] = builder.getAffineDimExpr(rank);
    AffineMap updates = AffineMap::get(rank + 1, 0, update, builder.getContext());
    AffineMap result = AffineMap::get(rank + 1, 0, dimExprs(builder, 0, rank), builder.getContext());
    return SmallVector<Value>{
        buildOneHot(builder, op->getLoc(), type, operands, updates, updates, result, dim, kindOf(put))};
  }
};

} // namespace

void registerIndexLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<GatherOp, GatherLowering>(*context);
    attachOnce<TakeOp, TakeLowering>(*context);
    attachOnce<IndexAddOp, IndexAddLowering>(*context);
    attachOnce<ScatterAddOp, PutLowering<ScatterAddOp>>(*context);
    attachOnce<ScatterReduceOp, PutLowering<ScatterReduceOp>>(*context);
  });
}

} // namespace par
