#include "par/Interfaces/ShardingRule.h"

using namespace mlir;

namespace par {
namespace {

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

DimFactors dimOf(ShardingRule &rule, int64_t size, FactorKind kind) {
  if (size == 1)
    return {};
  return {rule.addFactor(size, kind)};
}

/// Dims before and after `dim` of `shape` are parallel; at `dim` stand `indices` factors of kind `inner`.
struct IndexDims {
  IndexDims(ShardingRule &rule, ArrayRef<int64_t> whole, int64_t dim, ArrayRef<int64_t> indices,
            FactorKind inner) {
    for (auto [i, size] : llvm::enumerate(whole))
      table.push_back(
          dimOf(rule, size, static_cast<int64_t>(i) == dim ? FactorKind::Indexed : FactorKind::Parallel));
    for (int64_t size : indices)
      index.push_back(dimOf(rule, size, inner));
    rows.assign(table.begin(), table.begin() + dim);
    llvm::append_range(rows, index);
    rows.append(table.begin() + dim + 1, table.end());
  }
  SmallVector<DimFactors> table; ///< of the tensor that is addressed
  SmallVector<DimFactors> index; ///< of the indices
  SmallVector<DimFactors> rows;  ///< of what is picked, or added
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
};

struct ScatterAddRule : ShardingRuleOpInterface::ExternalModel<ScatterAddRule, ScatterAddOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto scatter = cast<ScatterAddOp>(op);
    ShardingRule rule;
    IndexDims dims(rule, shapeOf(scatter.getResult()), scatter.getDim(), shapeOf(scatter.getIndices()),
                   FactorKind::Sum);
    rule.operands = {dims.rows, dims.index};
    rule.results = {dims.table};
    rule.linear = {{0}};
    return rule;
  }
};

/// The dims of take and put_add: all parallel but `dim`, which is `along` for the whole tensor and `inner`
/// for the part.
struct AlongDims {
  AlongDims(ShardingRule &rule, ArrayRef<int64_t> whole, ArrayRef<int64_t> part, int64_t dim,
            FactorKind inner) {
    for (auto [i, size] : llvm::enumerate(whole)) {
      bool along = static_cast<int64_t>(i) == dim;
      table.push_back(dimOf(rule, size, along ? FactorKind::Indexed : FactorKind::Parallel));
      picked.push_back(along ? dimOf(rule, part[i], inner) : table.back());
    }
  }
  SmallVector<DimFactors> table, picked;
};

struct TakeRule : ShardingRuleOpInterface::ExternalModel<TakeRule, TakeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto take = cast<TakeOp>(op);
    ShardingRule rule;
    AlongDims dims(rule, shapeOf(take.getOperand()), shapeOf(take.getIndices()), take.getDim(),
                   FactorKind::Parallel);
    rule.operands = {dims.table, dims.picked};
    rule.results = {dims.picked};
    rule.linear = {{0}};
    return rule;
  }
};

struct PutAddRule : ShardingRuleOpInterface::ExternalModel<PutAddRule, PutAddOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto put = cast<PutAddOp>(op);
    ShardingRule rule;
    AlongDims dims(rule, shapeOf(put.getResult()), shapeOf(put.getIndices()), put.getDim(), FactorKind::Sum);
    rule.operands = {dims.picked, dims.picked};
    rule.results = {dims.table};
    rule.linear = {{0}};
    return rule;
  }
};

} // namespace

void registerIndexRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    GatherOp::attachInterface<GatherRule>(*context);
    ScatterAddOp::attachInterface<ScatterAddRule>(*context);
    TakeOp::attachInterface<TakeRule>(*context);
    PutAddOp::attachInterface<PutAddRule>(*context);
  });
}

} // namespace par
