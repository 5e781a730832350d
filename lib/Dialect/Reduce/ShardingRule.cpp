#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

FactorKind factorOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return FactorKind::Sum;
  case ReduceKind::max:
    return FactorKind::Max;
  case ReduceKind::min:
    return FactorKind::Min;
  case ReduceKind::bitAnd:
    return FactorKind::And;
  case ReduceKind::bitOr:
    return FactorKind::Or;
  case ReduceKind::product:
    return FactorKind::NeedReplication;
  }
  llvm_unreachable("all kinds are listed");
}

struct ReduceRule : ShardingRuleOpInterface::ExternalModel<ReduceRule, ReduceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto reduce = cast<ReduceOp>(op);
    auto type = cast<RankedTensorType>(reduce.getOperand().getType());
    ShardingRule rule = ShardingRule::getElementwise(type.getShape(), 1, 0);
    SmallVector<DimFactors> &to = rule.results.emplace_back();
    for (auto [dim, factors] : llvm::enumerate(rule.operands[0])) {
      if (!llvm::is_contained(reduce.getDims(), static_cast<int64_t>(dim)))
        to.push_back(factors);
      else
        for (unsigned factor : factors)
          rule.factors[factor].kind = factorOf(reduce.getKind());
    }
    if (reduce.getKind() == ReduceKind::sum)
      rule.linear.push_back({0});
    return rule;
  }
};

/// The dim worked along is whole; the others are parallel.
struct ArgReduceRule : ShardingRuleOpInterface::ExternalModel<ArgReduceRule, ArgReduceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto reduce = cast<ArgReduceOp>(op);
    ShardingRule rule =
        ShardingRule::getElementwise(cast<RankedTensorType>(reduce.getOperand().getType()).getShape(), 1, 0);
    rule.results.push_back(rule.operands[0]);
    rule.results[0].erase(rule.results[0].begin() + reduce.getDim());
    for (unsigned factor : rule.operands[0][reduce.getDim()])
      rule.factors[factor].kind = FactorKind::NeedReplication;
    return rule;
  }
};

struct SortedPositionRule : ShardingRuleOpInterface::ExternalModel<SortedPositionRule, SortedPositionOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto sorted = cast<SortedPositionOp>(op);
    ShardingRule rule =
        ShardingRule::getElementwise(cast<RankedTensorType>(sorted.getOperand().getType()).getShape(), 1, 1);
    for (unsigned factor : rule.operands[0][sorted.getDim()])
      rule.factors[factor].kind = FactorKind::NeedReplication;
    return rule;
  }
};

struct CumulativeRule : ShardingRuleOpInterface::ExternalModel<CumulativeRule, CumulativeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto cumulative = cast<CumulativeOp>(op);
    ShardingRule rule = ShardingRule::getElementwise(cast<RankedTensorType>(cumulative.getType()).getShape(), 1, 1);
    for (unsigned factor : rule.operands[0][cumulative.getDim()])
      rule.factors[factor].kind = FactorKind::NeedReplication;
    if (cumulative.getKind() == ReduceKind::sum)
      rule.linear.push_back({0});
    return rule;
  }
};

} // namespace

void registerReduceRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ReduceOp, ReduceRule>(*context);
    attachOnce<ArgReduceOp, ArgReduceRule>(*context);
    attachOnce<SortedPositionOp, SortedPositionRule>(*context);
    attachOnce<CumulativeOp, CumulativeRule>(*context);
  });
}

} // namespace par
