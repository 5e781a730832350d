// Sharding rules of gather, take and the scatters. A sharded indexed dim is a sum factor: each rank masks the indices
// outside its shard, and the shards' results add up to the whole.
#include "par/Dialect/Interfaces/ShardingRule.h"
#include "../TensorTypes.h"
#include "ShiftedIndices.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Lower.h"

using namespace mlir;

namespace par {
namespace {

/// One new factor for a dim; none for a dim of size 1, unless it is addressed, which its indices' padding
/// must know.
DimFactors addressedDim(ShardingRule &rule, int64_t size, FactorKind kind) {
  if (size == 1 && kind != FactorKind::Indexed)
    return {};
  return {rule.addFactor(size, kind)};
}

/// `value` where the mask `here` is true, else `otherwise`. The mask's dims are dims [dim, dim + rank of here) of
/// `value`.
Value keepWhere(OpBuilder &builder, Location loc, Value here, Value value, int64_t dim, TypedAttr otherwise = {}) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rank = cast<RankedTensorType>(here.getType()).getRank();
  here = buildBroadcast(builder, loc, here, llvm::to_vector(llvm::seq<int64_t>(dim, dim + rank)), type.getShape());
  auto rest =
      SplatElementsAttr::get(type, otherwise ? Attribute(otherwise) : builder.getZeroAttr(type.getElementType()));
  return SelectOp::create(builder, loc, type, here, value, ConstantOp::create(builder, loc, rest));
}

/// The axes that shard the addressed dim; none when slicing in time.
ArrayRef<StringAttr> axesAlong(ArrayRef<ShardingAttr> shardings, int64_t dim) {
  return shardings.empty() ? ArrayRef<StringAttr>() : shardings[0].getAxes(dim);
}

/// gather and take: shift and mask the indices, the shards' results add up to the whole.
template <typename Op>
FailureOr<SmallVector<Value>> localizePick(Op op, OpBuilder &builder, const LocalizeContext &context, int64_t maskDim) {
  int64_t dim = op.getDim();
  ArrayRef<StringAttr> axes = axesAlong(context.operandShardings, dim);
  if (axes.empty())
    return localizeByCloning(op, builder, context);
  Value table = context.operands[0];
  ShiftedIndices shifted(builder, op.getLoc(), context.operands[1], axes,
                         cast<RankedTensorType>(table.getType()).getDimSize(dim));
  Value picked = Op::create(builder, op.getLoc(), context.localTypes[0], table, shifted.local, dim);
  return SmallVector<Value>{keepWhere(builder, op.getLoc(), shifted.here, picked, maskDim)};
}

/// Shards of adding scatters: an update whose index lies on another shard adds zero to row 0.
template <typename Op>
FailureOr<SmallVector<Value>> localizeAdd(Op op, OpBuilder &builder, const LocalizeContext &context, int64_t maskDim) {
  int64_t dim = op.getDim(), shard = context.localTypes[0].getDimSize(dim);
  ArrayRef<StringAttr> axes = axesAlong(context.resultShardings, dim);
  Value updates = context.operands[0], indices = context.operands[1];
  if (!axes.empty()) {
    ShiftedIndices shifted(builder, op.getLoc(), indices, axes, shard);
    updates = keepWhere(builder, op.getLoc(), shifted.here, updates, maskDim);
    indices = shifted.local;
  }
  Value sum = Op::create(builder, op.getLoc(), context.localTypes[0], updates, indices, dim, shard);
  return SmallVector<Value>{sum};
}

/// Dims before and after `dim` of `shape` are parallel; `dim` has `indices` factors of kind `inner`.
struct IndexDims {
  IndexDims(ShardingRule &rule, ArrayRef<int64_t> whole, int64_t dim, ArrayRef<int64_t> indices, FactorKind inner) {
    for (auto [i, size] : llvm::enumerate(whole))
      table.push_back(
          addressedDim(rule, size, static_cast<int64_t>(i) == dim ? FactorKind::Indexed : FactorKind::Parallel));
    for (int64_t size : indices)
      index.push_back(addressedDim(rule, size, inner));
    rows.assign(table.begin(), table.begin() + dim);
    llvm::append_range(rows, index);
    rows.append(table.begin() + dim + 1, table.end());
  }
  SmallVector<DimFactors> table; ///< of the tensor that is addressed
  SmallVector<DimFactors> index; ///< of the indices
  SmallVector<DimFactors> rows;  ///< of the rows that are taken or added
};

struct GatherRule : ShardingRuleOpInterface::ExternalModel<GatherRule, GatherOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto gather = cast<GatherOp>(op);
    ShardingRule rule;
    IndexDims dims(rule, shapeOf(gather.getOperand()), gather.getDim(), shapeOf(gather.getIndices()),
                   FactorKind::Parallel);
    rule.operands = {dims.table, dims.index};
    rule.results = {dims.rows};
    rule.linear = {{0}};
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizePick(cast<GatherOp>(op), builder, context, cast<GatherOp>(op).getDim());
  }
};

struct IndexAddRule : ShardingRuleOpInterface::ExternalModel<IndexAddRule, IndexAddOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto scatter = cast<IndexAddOp>(op);
    ShardingRule rule;
    IndexDims dims(rule, shapeOf(scatter.getResult()), scatter.getDim(), shapeOf(scatter.getIndices()),
                   FactorKind::Sum);
    rule.operands = {dims.rows, dims.index};
    rule.results = {dims.table};
    rule.linear = {{0}};
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizeAdd(cast<IndexAddOp>(op), builder, context, cast<IndexAddOp>(op).getDim());
  }
};

/// Dims of take and of adding scatters: all parallel but `dim`, which is `along` for the whole tensor and `inner` for
/// the part.
struct AlongDims {
  AlongDims(ShardingRule &rule, ArrayRef<int64_t> whole, ArrayRef<int64_t> part, int64_t dim, FactorKind inner) {
    for (auto [i, size] : llvm::enumerate(whole)) {
      bool along = static_cast<int64_t>(i) == dim;
      table.push_back(addressedDim(rule, size, along ? FactorKind::Indexed : FactorKind::Parallel));
      picked.push_back(along ? addressedDim(rule, part[i], inner) : table.back());
    }
  }
  SmallVector<DimFactors> table, picked;
};

struct TakeRule : ShardingRuleOpInterface::ExternalModel<TakeRule, TakeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto take = cast<TakeOp>(op);
    ShardingRule rule;
    AlongDims dims(rule, shapeOf(take.getOperand()), shapeOf(take.getIndices()), take.getDim(), FactorKind::Parallel);
    rule.operands = {dims.table, dims.picked};
    rule.results = {dims.picked};
    rule.linear = {{0}};
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizePick(cast<TakeOp>(op), builder, context, 0);
  }
};

struct ScatterAddRule : ShardingRuleOpInterface::ExternalModel<ScatterAddRule, ScatterAddOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto put = cast<ScatterAddOp>(op);
    ShardingRule rule;
    AlongDims dims(rule, shapeOf(put.getResult()), shapeOf(put.getIndices()), put.getDim(), FactorKind::Sum);
    rule.operands = {dims.picked, dims.picked};
    rule.results = {dims.table};
    rule.linear = {{0}};
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizeAdd(cast<ScatterAddOp>(op), builder, context, 0);
  }
};

struct ScatterReduceRule : ShardingRuleOpInterface::ExternalModel<ScatterReduceRule, ScatterReduceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto put = cast<ScatterReduceOp>(op);
    ReduceKind kind = put.getKind();
    FactorKind inner = kind == ReduceKind::sum   ? FactorKind::Sum
                       : kind == ReduceKind::max ? FactorKind::Max
                       : kind == ReduceKind::min ? FactorKind::Min
                                                 : FactorKind::NeedReplication;
    ShardingRule rule;
    AlongDims dims(rule, shapeOf(put.getResult()), shapeOf(put.getIndices()), put.getDim(), inner);
    rule.operands = {dims.picked, dims.picked};
    rule.results = {dims.table};
    if (kind == ReduceKind::sum)
      rule.linear = {{0}};
    return rule;
  }
  /// An update whose index lies on another shard combines the neutral element into row 0.
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    auto put = cast<ScatterReduceOp>(op);
    int64_t dim = put.getDim(), shard = context.localTypes[0].getDimSize(dim);
    ArrayRef<StringAttr> axes = axesAlong(context.resultShardings, dim);
    Value updates = context.operands[0], indices = context.operands[1];
    if (!axes.empty()) {
      ShiftedIndices shifted(builder, op->getLoc(), indices, axes, shard);
      Type element = context.localTypes[0].getElementType();
      updates = keepWhere(builder, op->getLoc(), shifted.here, updates, 0, getNeutral(builder, put.getKind(), element));
      indices = shifted.local;
    } else if (!context.operandShardings.empty()) {
      // Padding is filled with the neutral element; its index may be any row.
      auto type = cast<RankedTensorType>(indices.getType());
      Value first = buildSplat(builder, op->getLoc(), type, 0),
            last = buildSplat(builder, op->getLoc(), type, shard - 1);
      indices = MaximumOp::create(builder, op->getLoc(), type, indices, first);
      indices = MinimumOp::create(builder, op->getLoc(), type, indices, last);
    }
    Value result = ScatterReduceOp::create(builder, op->getLoc(), context.localTypes[0], put.getKind(), updates,
                                           indices, dim, shard);
    return SmallVector<Value>{result};
  }
};

} // namespace

void registerIndexRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<GatherOp, GatherRule>(*context);
    attachOnce<IndexAddOp, IndexAddRule>(*context);
    attachOnce<TakeOp, TakeRule>(*context);
    attachOnce<ScatterReduceOp, ScatterReduceRule>(*context);
    attachOnce<ScatterAddOp, ScatterAddRule>(*context);
  });
}

} // namespace par
