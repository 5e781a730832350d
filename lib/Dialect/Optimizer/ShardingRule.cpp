#include "par/Dialect/Attach.h"
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
    // One weight and its states in either, and the gradient.
    unsigned scalars = op->getNumOperands() - op->getNumResults() - 1;
    for (SmallVector<DimFactors> &dims : llvm::MutableArrayRef(rule.operands).take_back(scalars))
      dims.clear();
    return rule;
  }
};

} // namespace

void registerOptimizerRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, UpdateRule<SgdOp>>(*context);
    attachOnce<MomentumOp, UpdateRule<MomentumOp>>(*context);
    attachOnce<AdamwOp, UpdateRule<AdamwOp>>(*context);
  });
}

} // namespace par
