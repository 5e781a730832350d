#include "par/Dialect/Interfaces/ShardingRule.h"
#include "../Index/ShiftedIndices.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Elementwise over the weight; scalars (learning rate, step) are replicated. Rows are whole on each shard of the
/// weight's, which updates its own.
template <typename Op>
struct UpdateRule : ShardingRuleOpInterface::ExternalModel<UpdateRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    auto update = cast<Op>(op);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    ShardingRule rule = ShardingRule::getElementwise(shape, op->getNumOperands(), op->getNumResults());
    // One weight and its states in either, and the gradient.
    unsigned scalars = op->getNumOperands() - op->getNumResults() - 1;
    for (SmallVector<DimFactors> &dims : llvm::MutableArrayRef(rule.operands).take_back(scalars))
      dims.clear();
    if (update.getRows())
      nameRows(rule, update);
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    ArrayRef<StringAttr> axes;
    if (cast<Op>(op).getRows() && !context.operandShardings.empty())
      axes = context.operandShardings[0].getAxes(0);
    if (axes.empty())
      return localizeByCloning(op, builder, context);
    SmallVector<Value> operands(context.operands);
    ShiftedIndices shifted(builder, op->getLoc(), operands.back(), axes, context.localTypes[0].getDimSize(0));
    auto type = cast<RankedTensorType>(operands.back().getType());
    Value none = buildSplat(builder, op->getLoc(), type, -1);
    operands.back() = SelectOp::create(builder, op->getLoc(), type, shifted.here, shifted.local, none);
    LocalizeContext own = context;
    own.operands = operands;
    return localizeByCloning(op, builder, own);
  }

private:
  /// The gradient's first dim is that of the rows, by which the weight's is addressed.
  static void nameRows(ShardingRule &rule, Op update) {
    int64_t size = cast<RankedTensorType>(update.getWeight().getType()).getDimSize(0);
    int64_t many = cast<RankedTensorType>(update.getRows().getType()).getDimSize(0);
    DimFactors named{rule.addFactor(many, FactorKind::NeedReplication)};
    if (rule.results[0][0].empty()) {
      DimFactors table{rule.addFactor(size, FactorKind::Indexed)};
      for (auto *tensors : {&rule.operands, &rule.results})
        for (SmallVector<DimFactors> &dims : *tensors)
          if (!dims.empty())
            dims.front() = table;
    } else {
      rule.factors[rule.results[0][0].front()].kind = FactorKind::Indexed;
    }
    rule.operands[1].front() = named;
    rule.operands.back() = {named};
  }
};

/// Every element of the new weight depends on all of the weight and the gradient: ranks have them whole, and a state
/// that lies sharded between steps is gathered for the update.
struct MuonRule : ShardingRuleOpInterface::ExternalModel<MuonRule, MuonOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    ShardingRule rule = ShardingRule::getElementwise(shape, op->getNumOperands(), op->getNumResults());
    rule.operands.back().clear(); // the rate
    for (auto &factor : rule.factors)
      factor.kind = FactorKind::NeedReplication;
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizeByCloning(op, builder, context);
  }
};

/// Whole along the dims that are collected.
struct CollectRule : ShardingRuleOpInterface::ExternalModel<CollectRule, CollectOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    ShardingRule rule = ShardingRule::getElementwise(shape, 1, 1);
    for (const DimFactors &dim : ArrayRef(rule.results[0]).take_front(cast<CollectOp>(op).getDims()))
      for (unsigned factor : dim)
        rule.factors[factor].kind = FactorKind::NeedReplication;
    return rule;
  }
  /// On shards it has done its work.
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    if (context.operandShardings.empty())
      return localizeByCloning(op, builder, context);
    return SmallVector<Value>{context.operands[0]};
  }
};

} // namespace

void registerOptimizerRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, UpdateRule<SgdOp>>(*context);
    attachOnce<MomentumOp, UpdateRule<MomentumOp>>(*context);
    attachOnce<AdamwOp, UpdateRule<AdamwOp>>(*context);
    attachOnce<LionOp, UpdateRule<LionOp>>(*context);
    attachOnce<MuonOp, MuonRule>(*context);
    attachOnce<CollectOp, CollectRule>(*context);
  });
}

} // namespace par
