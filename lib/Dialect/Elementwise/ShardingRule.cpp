#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Which operands of an elementwise op may together be unreduced sums.
enum class Linear { None, All, Each, First, Values };

template <typename Op, Linear linear>
struct ElementwiseRule : ShardingRuleOpInterface::ExternalModel<ElementwiseRule<Op, linear>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ShardingRule rule = ShardingRule::getElementwise(type.getShape(), op->getNumOperands(), 1);
    unsigned many = op->getNumOperands();
    if (linear == Linear::All)
      rule.linear.push_back(llvm::to_vector(llvm::seq<unsigned>(0, many)));
    if (linear == Linear::Each)
      for (unsigned i = 0; i < many; ++i)
        rule.linear.push_back({i});
    if (linear == Linear::First)
      rule.linear.push_back({0});
    if (linear == Linear::Values) // a select: both branches
      rule.linear.push_back({1, 2});
    return rule;
  }
};

/// A quotient of floats is linear in the dividend; one of integers rounds.
struct DivideRule : ShardingRuleOpInterface::ExternalModel<DivideRule, DivideOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ShardingRule rule = ShardingRule::getElementwise(type.getShape(), 2, 1);
    if (isa<FloatType>(type.getElementType()))
      rule.linear.push_back({0});
    return rule;
  }
};

struct ConvertRule : ShardingRuleOpInterface::ExternalModel<ConvertRule, ConvertOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto from = cast<RankedTensorType>(op->getOperand(0).getType()),
         to = cast<RankedTensorType>(op->getResult(0).getType());
    ShardingRule rule = ShardingRule::getElementwise(to.getShape(), 1, 1);
    // A sum of rounded parts is not the rounded sum: only a conversion that rounds nothing is linear. (f16 and bf16
    // count as equally wide.)
    auto narrow = dyn_cast<FloatType>(from.getElementType()), wide = dyn_cast<FloatType>(to.getElementType());
    if (narrow && wide && APFloat::isRepresentableBy(narrow.getFloatSemantics(), wide.getFloatSemantics()))
      rule.linear.push_back({0});
    return rule;
  }
};

/// On shards a constraint has done its work; while slicing in time it stays.
struct ConstrainRule : ShardingRuleOpInterface::ExternalModel<ConstrainRule, ConstrainOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ShardingRule rule = ShardingRule::getElementwise(type.getShape(), 1, 1);
    rule.linear.push_back({0});
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    if (context.operandShardings.empty())
      return localizeByCloning(op, builder, context);
    return SmallVector<Value>{context.operands[0]};
  }
};

/// The row numbers of a gradient are sharded like its first dim.
struct GradientRule : ShardingRuleOpInterface::ExternalModel<GradientRule, GradientOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ShardingRule rule = ShardingRule::getElementwise(type.getShape(), op->getNumOperands(), 1);
    if (op->getNumOperands() > 1)
      rule.operands[1].resize(1);
    rule.linear.push_back({0});
    return rule;
  }
};

template <Linear linear, typename... Ops>
void attach(MLIRContext *context) {
  (attachOnce<Ops, ElementwiseRule<Ops, linear>>(*context), ...);
}

} // namespace

void registerElementwiseRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attach<Linear::None, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, RsqrtOp, ReciprocalOp, TanhOp, ErfOp, SigmoidOp, SinOp,
           CosOp, AtanOp, FloorOp, CeilOp, RoundOp, NotOp, IsNanOp, IsFiniteOp, RemainderOp, MaximumOp, MinimumOp,
           PowerOp, AndOp, OrOp, XorOp, ShiftLeftOp, ShiftRightOp, RandomBitsOp, BitCastOp, CompareOp, GeluOp,
           CotangentOp>(context);
    attach<Linear::All, AddOp, SubtractOp>(context);
    attach<Linear::Each, MultiplyOp>(context);
    attach<Linear::First, NegateOp, GeluGradOp>(context);
    attach<Linear::Values, SelectOp>(context);
    attachOnce<DivideOp, DivideRule>(*context);
    attachOnce<ConvertOp, ConvertRule>(*context);
    attachOnce<ConstrainOp, ConstrainRule>(*context);
    attachOnce<GradientOp, GradientRule>(*context);
  });
}

} // namespace par
