#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Tokens are parallel; the op is decomposed before its classes are sharded. A single class has a factor too, since
/// labels address it.
ShardingRule getClassRule(Value logits) {
  ShardingRule rule = ShardingRule::getElementwise(cast<RankedTensorType>(logits.getType()).getShape(), 1, 0);
  DimFactors &classes = rule.operands[0].back();
  if (classes.empty())
    classes.push_back(rule.addFactor(1));
  rule.factors[classes.front()].kind = FactorKind::Decompose;
  return rule;
}

struct CrossEntropyRule : ShardingRuleOpInterface::ExternalModel<CrossEntropyRule, CrossEntropyOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = getClassRule(cast<CrossEntropyOp>(op).getLogits());
    SmallVector<DimFactors> logits = rule.operands[0], token(ArrayRef<DimFactors>(logits).drop_back());
    rule.operands = {logits, token};
    rule.results = {token, token};
    return rule;
  }
};

struct CrossEntropyGradRule : ShardingRuleOpInterface::ExternalModel<CrossEntropyGradRule, CrossEntropyGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = getClassRule(cast<CrossEntropyGradOp>(op).getLogits());
    SmallVector<DimFactors> logits = rule.operands[0], token(ArrayRef<DimFactors>(logits).drop_back());
    rule.operands = {token, logits, token, token};
    rule.results = {logits};
    rule.linear = {{0}};
    return rule;
  }
};

} // namespace

void registerLossRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<CrossEntropyOp, CrossEntropyRule>(*context);
    attachOnce<CrossEntropyGradOp, CrossEntropyGradRule>(*context);
  });
}

} // namespace par
