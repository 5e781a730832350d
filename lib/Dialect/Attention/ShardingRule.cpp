#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Attention.h"

using namespace mlir;

namespace par {
namespace {

/// The dims of an attention as factors; none for those of size 1. Queries, and heads that share keys, need a
/// decomposition before they are sharded: a causal mask depends on their positions, and the cotangents of keys and
/// values are sums over them.
struct HeadFactors {
  HeadFactors(ShardingRule &rule, const Heads &heads) {
    auto add = [&](int64_t size, FactorKind kind) {
      return size == 1 ? DimFactors() : DimFactors{rule.addFactor(size, kind)};
    };
    batch = add(heads.batch, FactorKind::Parallel);
    groups = add(heads.groups, FactorKind::Parallel);
    this->heads = groups;
    llvm::append_range(this->heads, add(heads.repeats, FactorKind::Decompose));
    queries = add(heads.queries, FactorKind::Decompose);
    // Every query attends to all keys and values: they are unsharded.
    keys = add(heads.keys, FactorKind::NeedReplication);
    width = add(heads.width, FactorKind::NeedReplication);
    valueWidth = add(heads.valueWidth, FactorKind::NeedReplication);
  }
  SmallVector<DimFactors> query() const { return {batch, heads, queries, width}; }
  SmallVector<DimFactors> key() const { return {batch, groups, keys, width}; }
  SmallVector<DimFactors> value() const { return {batch, groups, keys, valueWidth}; }
  SmallVector<DimFactors> attended() const { return {batch, heads, queries, valueWidth}; }
  SmallVector<DimFactors> lse() const { return {batch, heads, queries}; }
  /// Dims of size 1 are broadcast, and replicated on all ranks.
  SmallVector<DimFactors> mask(Value mask) const {
    SmallVector<DimFactors> dims{batch, heads, queries, keys};
    for (auto [size, dim] : llvm::zip(cast<RankedTensorType>(mask.getType()).getShape(), dims))
      if (size == 1)
        dim.clear();
    return dims;
  }

  DimFactors batch, groups, heads, queries, keys, width, valueWidth;
};

struct AttentionRule : ShardingRuleOpInterface::ExternalModel<AttentionRule, AttentionOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto attention = cast<AttentionOp>(op);
    ShardingRule rule;
    HeadFactors dims(rule, Heads(attention));
    rule.operands = {dims.query(), dims.key(), dims.value()};
    if (Value mask = attention.getMask())
      rule.operands.push_back(dims.mask(mask));
    rule.results = {dims.attended(), dims.lse()};
    return rule;
  }
};

struct AttentionGradRule : ShardingRuleOpInterface::ExternalModel<AttentionGradRule, AttentionGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto grad = cast<AttentionGradOp>(op);
    ShardingRule rule;
    HeadFactors dims(rule, Heads(grad));
    rule.operands = {dims.attended(), dims.query(), dims.key(), dims.value(), dims.attended(), dims.lse()};
    if (Value mask = grad.getMask())
      rule.operands.push_back(dims.mask(mask));
    rule.results = {dims.query(), dims.key(), dims.value()};
    rule.linear = {{0}};
    return rule;
  }
};

} // namespace

void registerAttentionRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<AttentionOp, AttentionRule>(*context);
    attachOnce<AttentionGradOp, AttentionGradRule>(*context);
  });
}

} // namespace par
