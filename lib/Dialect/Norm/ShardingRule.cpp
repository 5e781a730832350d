#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Elementwise except along one dim; the op is decomposed before that is sharded. The first operand may be unreduced if
/// `linear`.
template <typename Op, bool linear>
struct SoftmaxRule : ShardingRuleOpInterface::ExternalModel<SoftmaxRule<Op, linear>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ShardingRule rule = ShardingRule::getElementwise(type.getShape(), op->getNumOperands(), 1);
    for (unsigned factor : rule.operands[0][cast<Op>(op).getDim()])
      rule.factors[factor].kind = FactorKind::Decompose;
    if (linear)
      rule.linear.push_back({0});
    return rule;
  }
};

/// Leading dims are parallel; the trailing ones, which scale has, are normalised over.
ShardingRule getNormRule(RankedTensorType type, int64_t trailing) {
  ShardingRule rule = ShardingRule::getElementwise(type.getShape(), 1, 0);
  for (DimFactors &dim : llvm::MutableArrayRef(rule.operands[0]).take_back(trailing))
    for (unsigned factor : dim)
      rule.factors[factor].kind = FactorKind::Decompose;
  return rule;
}

struct LayerNormRule : ShardingRuleOpInterface::ExternalModel<LayerNormRule, LayerNormOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto norm = cast<LayerNormOp>(op);
    int64_t trailing = cast<RankedTensorType>(norm.getScale().getType()).getRank();
    ShardingRule rule = getNormRule(cast<RankedTensorType>(norm.getOperand().getType()), trailing);
    SmallVector<DimFactors> all = rule.operands[0];
    SmallVector<DimFactors> leading(ArrayRef<DimFactors>(all).drop_back(trailing)),
        scale(ArrayRef<DimFactors>(all).take_back(trailing));
    rule.operands = {all, scale, scale};
    rule.results = {all, leading, leading};
    return rule;
  }
};

struct LayerNormGradRule : ShardingRuleOpInterface::ExternalModel<LayerNormGradRule, LayerNormGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto norm = cast<LayerNormGradOp>(op);
    int64_t trailing = cast<RankedTensorType>(norm.getScale().getType()).getRank();
    ShardingRule rule = getNormRule(cast<RankedTensorType>(norm.getOperand().getType()), trailing);
    SmallVector<DimFactors> all = rule.operands[0];
    SmallVector<DimFactors> leading(ArrayRef<DimFactors>(all).drop_back(trailing)),
        scale(ArrayRef<DimFactors>(all).take_back(trailing));
    rule.operands = {all, all, scale, leading, leading};
    rule.results = {all};
    rule.linear = {{0}, {2}};
    return rule;
  }
};

} // namespace

void registerNormRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SoftmaxOp, SoftmaxRule<SoftmaxOp, false>>(*context);
    attachOnce<SoftmaxGradOp, SoftmaxRule<SoftmaxGradOp, true>>(*context);
    attachOnce<LayerNormOp, LayerNormRule>(*context);
    attachOnce<LayerNormGradOp, LayerNormGradRule>(*context);
  });
}

} // namespace par
