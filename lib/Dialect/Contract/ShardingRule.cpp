#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

struct DotRule : ShardingRuleOpInterface::ExternalModel<DotRule, DotOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto dot = cast<DotOp>(op);
    ShardingRule rule = ShardingRule::getElementwise(dot.getLhs().getType().getShape(), 1, 0);
    SmallVector<DimFactors> &right = rule.operands.emplace_back(dot.getRhs().getType().getRank());
    SmallVector<DimFactors> &left = rule.operands[0];
    SmallVector<DimFactors> &to = rule.results.emplace_back();
    for (auto [i, j] : llvm::zip(dot.getLhsBatching(), dot.getRhsBatching())) {
      right[j] = left[i];
      to.push_back(left[i]);
    }
    for (auto [i, j] : llvm::zip(dot.getLhsContracting(), dot.getRhsContracting())) {
      right[j] = left[i];
      for (unsigned factor : left[i])
        rule.factors[factor].kind = FactorKind::Sum;
    }
    for (int64_t dim : dot.getLhsFree())
      to.push_back(left[dim]);
    for (int64_t dim : dot.getRhsFree()) {
      if (int64_t size = dot.getRhs().getType().getDimSize(dim); size != 1)
        right[dim].push_back(rule.addFactor(size));
      to.push_back(right[dim]);
    }
    rule.linear = {{0}, {1}};
    return rule;
  }
};

} // namespace

void registerContractRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) { attachOnce<DotOp, DotRule>(*context); });
}

} // namespace par
