// Sharding rules of constants and shape ops. A reshape walks both shapes from the major end and makes factors of the
// sizes that they share; dims of which only a part is kept are not sharded.
#include "par/Dialect/Interfaces/ShardingRule.h"
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"

#include <numeric>

using namespace mlir;

namespace par {
namespace {

/// One new factor for a dim; none for a dim of size 1.
DimFactors dimOf(ShardingRule &rule, int64_t size, FactorKind kind = FactorKind::Parallel) {
  if (size == 1)
    return {};
  return {rule.addFactor(size, kind)};
}

/// Rule of an op that keeps the rank: result dim d is operand dim d if `kept(d)`, else neither may be sharded.
template <typename Kept>
ShardingRule keepDims(Operation *op, unsigned operands, Kept kept) {
  ShardingRule rule;
  SmallVector<DimFactors> from, to;
  ArrayRef<int64_t> result = shapeOf(op->getResult(0)), operand = shapeOf(op->getOperand(0));
  for (auto [dim, size] : llvm::enumerate(result)) {
    bool same = kept(dim);
    to.push_back(dimOf(rule, size, same ? FactorKind::Parallel : FactorKind::NeedReplication));
    from.push_back(same ? to.back() : dimOf(rule, operand[dim], FactorKind::NeedReplication));
  }
  rule.operands.assign(operands, from);
  rule.results.push_back(to);
  rule.linear.push_back(llvm::to_vector(llvm::seq<unsigned>(0, operands)));
  return rule;
}

struct ConstantRule : ShardingRuleOpInterface::ExternalModel<ConstantRule, ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule;
    FactorKind kind = cast<ConstantOp>(op).getValue().isSplat() ? FactorKind::Parallel : FactorKind::NeedReplication;
    SmallVector<DimFactors> &dims = rule.results.emplace_back();
    for (int64_t size : shapeOf(op->getResult(0)))
      dims.push_back(dimOf(rule, size, kind));
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    ElementsAttr value = cast<ConstantOp>(op).getValue();
    if (value.isSplat() && context.localTypes[0] != value.getShapedType())
      value = SplatElementsAttr::get(context.localTypes[0], cast<DenseElementsAttr>(value).getSplatValue<Attribute>());
    Value local = ConstantOp::create(builder, op->getLoc(), value);
    return SmallVector<Value>{local};
  }
};

struct IotaRule : ShardingRuleOpInterface::ExternalModel<IotaRule, IotaOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::getElementwise(shapeOf(op->getResult(0)), 0, 1);
    // Along its own dim a shard starts elsewhere: the local op adds an offset.
    for (unsigned factor : rule.results[0][cast<IotaOp>(op).getDim()])
      rule.factors[factor].kind = FactorKind::Indexed;
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    int64_t dim = cast<IotaOp>(op).getDim();
    RankedTensorType type = context.localTypes[0];
    Value local = IotaOp::create(builder, op->getLoc(), type, dim);
    if (!context.resultShardings.empty() && !context.resultShardings[0].getAxes(dim).empty()) {
      Value start =
          buildShardStart(builder, op->getLoc(), context.resultShardings[0].getAxes(dim), type.getDimSize(dim));
      start = buildConvert(builder, op->getLoc(), start, type.getElementType());
      start = buildBroadcast(builder, op->getLoc(), start, {}, type.getShape());
      local = AddOp::create(builder, op->getLoc(), type, local, start);
    }
    return SmallVector<Value>{local};
  }
};

struct BroadcastRule : ShardingRuleOpInterface::ExternalModel<BroadcastRule, BroadcastInDimOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto broadcast = cast<BroadcastInDimOp>(op);
    ShardingRule rule = ShardingRule::getElementwise(broadcast.getType().getShape(), 0, 1);
    SmallVector<DimFactors> &from = rule.operands.emplace_back();
    for (auto [size, dim] : llvm::zip(shapeOf(broadcast.getOperand()), broadcast.getDims()))
      from.push_back(size == 1 ? DimFactors() : rule.results[0][dim]);
    rule.linear.push_back({0});
    return rule;
  }
};

/// Walks both shapes from the major end; common parts become factors, the rest may not be sharded.
struct ReshapeRule : ShardingRuleOpInterface::ExternalModel<ReshapeRule, ReshapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule;
    ArrayRef<int64_t> from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
    SmallVector<DimFactors> &left = rule.operands.emplace_back(from.size());
    SmallVector<DimFactors> &right = rule.results.emplace_back(to.size());
    rule.linear.push_back({0});
    // The dims of an empty tensor do not correspond.
    if (llvm::is_contained(from, 0)) {
      keepWhole(rule, left, from);
      keepWhole(rule, right, to);
      return rule;
    }
    size_t i = 0, j = 0;
    int64_t a = 1, b = 1; // the rest of the dims at i - 1 and j - 1
    while (true) {
      while (a == 1 && i < from.size())
        a = from[i++];
      while (b == 1 && j < to.size())
        b = to[j++];
      if (a == 1 || b == 1)
        break;
      int64_t common = std::gcd(a, b);
      if (common == 1) {
        // The rest of this group does not line up: [.., 3 | 4, ..] against [.., 2 | 6, ..].
        finishGroup(rule, left, right, from, to, i, j, a, b);
        continue;
      }
      // A factor taken from an unequal pair must not hide that the remainders do not line up later.
      unsigned factor = rule.addFactor(common);
      left[i - 1].push_back(factor);
      right[j - 1].push_back(factor);
      a /= common;
      b /= common;
    }
    return rule;
  }

  static void keepWhole(ShardingRule &rule, SmallVector<DimFactors> &dims, ArrayRef<int64_t> shape) {
    for (auto [dim, size] : llvm::enumerate(shape))
      dims[dim] = dimOf(rule, size, FactorKind::NeedReplication);
  }

  static void finishGroup(ShardingRule &rule, SmallVector<DimFactors> &left, SmallVector<DimFactors> &right,
                          ArrayRef<int64_t> from, ArrayRef<int64_t> to, size_t &i, size_t &j, int64_t &a, int64_t &b) {
    int64_t leftSize = a, rightSize = b;
    left[i - 1].push_back(rule.addFactor(a, FactorKind::NeedReplication));
    right[j - 1].push_back(rule.addFactor(b, FactorKind::NeedReplication));
    while (leftSize != rightSize) {
      if (leftSize < rightSize) {
        leftSize *= from[i];
        if (from[i] != 1)
          left[i].push_back(rule.addFactor(from[i], FactorKind::NeedReplication));
        ++i;
      } else {
        rightSize *= to[j];
        if (to[j] != 1)
          right[j].push_back(rule.addFactor(to[j], FactorKind::NeedReplication));
        ++j;
      }
    }
    a = b = 1;
  }
};

struct TransposeRule : ShardingRuleOpInterface::ExternalModel<TransposeRule, TransposeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto transpose = cast<TransposeOp>(op);
    ShardingRule rule = ShardingRule::getElementwise(shapeOf(transpose.getOperand()), 1, 0);
    SmallVector<DimFactors> &to = rule.results.emplace_back();
    for (int64_t dim : transpose.getPermutation())
      to.push_back(rule.operands[0][dim]);
    rule.linear.push_back({0});
    return rule;
  }
};

struct SliceRule : ShardingRuleOpInterface::ExternalModel<SliceRule, SliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto slice = cast<SliceOp>(op);
    return keepDims(op, 1,
                    [&](int64_t dim) { return slice.getType().getDimSize(dim) == shapeOf(slice.getOperand())[dim]; });
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    auto slice = cast<SliceOp>(op);
    SmallVector<int64_t> limits(slice.getLimits());
    for (auto [dim, limit] : llvm::enumerate(limits))
      if (slice.getType().getDimSize(dim) == shapeOf(slice.getOperand())[dim])
        limit = context.localTypes[0].getDimSize(dim);
    Value local = SliceOp::create(builder, op->getLoc(), context.localTypes[0], context.operands[0], slice.getStarts(),
                                  limits, slice.getStrides());
    return SmallVector<Value>{local};
  }
};

struct DynamicSliceRule : ShardingRuleOpInterface::ExternalModel<DynamicSliceRule, DynamicSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    int64_t along = cast<DynamicSliceOp>(op).getDim();
    ShardingRule rule = keepDims(op, 1, [&](int64_t dim) { return dim != along; });
    rule.operands.emplace_back();
    return rule;
  }
};

struct UpdateSliceRule : ShardingRuleOpInterface::ExternalModel<UpdateSliceRule, UpdateSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    int64_t along = cast<UpdateSliceOp>(op).getDim();
    ShardingRule rule = keepDims(op, 1, [&](int64_t dim) { return dim != along; });
    SmallVector<DimFactors> update = rule.operands[0];
    update[along] = dimOf(rule, shapeOf(op->getOperand(1))[along], FactorKind::NeedReplication);
    rule.operands.push_back(update);
    rule.operands.emplace_back();
    rule.linear = {{0, 1}};
    return rule;
  }
};

struct ReverseRule : ShardingRuleOpInterface::ExternalModel<ReverseRule, ReverseOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto reverse = cast<ReverseOp>(op);
    ShardingRule rule = ShardingRule::getElementwise(reverse.getType().getShape(), 1, 1);
    for (int64_t dim : reverse.getDims())
      for (unsigned factor : rule.operands[0][dim])
        rule.factors[factor].kind = FactorKind::NeedReplication;
    rule.linear.push_back({0});
    return rule;
  }
};

struct PadRule : ShardingRuleOpInterface::ExternalModel<PadRule, PadOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto pad = cast<PadOp>(op);
    ShardingRule rule = keepDims(op, 1, [&](int64_t dim) { return pad.getLow()[dim] == 0 && pad.getHigh()[dim] == 0; });
    auto value = dyn_cast<FloatAttr>(pad.getValue());
    auto integer = dyn_cast<IntegerAttr>(pad.getValue());
    if (!(value && value.getValue().isZero()) && !(integer && integer.getValue().isZero()))
      rule.linear.clear();
    return rule;
  }
};

struct ConcatRule : ShardingRuleOpInterface::ExternalModel<ConcatRule, ConcatOp> {
  ShardingRule getShardingRule(Operation *op) const {
    int64_t along = cast<ConcatOp>(op).getDim();
    ShardingRule rule = keepDims(op, op->getNumOperands(), [&](int64_t dim) { return dim != along; });
    // Operands may have other sizes along the dim than the first.
    for (unsigned i = 1; i < op->getNumOperands(); ++i)
      rule.operands[i][along] = dimOf(rule, shapeOf(op->getOperand(i))[along], FactorKind::NeedReplication);
    return rule;
  }
};

} // namespace

void registerShapeRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConstantOp, ConstantRule>(*context);
    attachOnce<IotaOp, IotaRule>(*context);
    attachOnce<BroadcastInDimOp, BroadcastRule>(*context);
    attachOnce<ReshapeOp, ReshapeRule>(*context);
    attachOnce<TransposeOp, TransposeRule>(*context);
    attachOnce<SliceOp, SliceRule>(*context);
    attachOnce<DynamicSliceOp, DynamicSliceRule>(*context);
    attachOnce<UpdateSliceOp, UpdateSliceRule>(*context);
    attachOnce<ReverseOp, ReverseRule>(*context);
    attachOnce<PadOp, PadRule>(*context);
    attachOnce<ConcatOp, ConcatRule>(*context);
  });
}

} // namespace par
