#include "par/Interfaces/ShardingRule.h"

using namespace mlir;

namespace par {
namespace {

/// Elementwise over the weight; scalars (learning rate, step) are replicated.
template <typename Op>
struct UpdateRule : ShardingRuleOpInterface::ExternalModel<UpdateRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    ShardingRule rule = ShardingRule::getElementwise(shape, op->getNumOperands(), op->getNumResults());
    constexpr unsigned scalars = std::is_same_v<Op, SgdOp> ? 1 : 2;
    for (SmallVector<DimFactors> &dims : llvm::MutableArrayRef(rule.operands).take_back(scalars))
      dims.clear();
    return rule;
  }
};

} // namespace

void registerOptimizerRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    SgdOp::attachInterface<UpdateRule<SgdOp>>(*context);
    MomentumOp::attachInterface<UpdateRule<MomentumOp>>(*context);
    AdamwOp::attachInterface<UpdateRule<AdamwOp>>(*context);
  });
}

} // namespace par
