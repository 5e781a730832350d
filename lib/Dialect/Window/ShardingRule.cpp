// Sharding rules of convolutions, patches and pooling. Images, groups and channels are factors; dims that windows slide
// over are not sharded.
#include "par/Dialect/Interfaces/ShardingRule.h"
#include "../TensorTypes.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// The dims of a convolution's three tensors: input [n, (g c), s...], filter [(g o), c, k...], output [n, (g o), x...].
/// Batch, channels and groups may be sharded; windows would need their neighbours' edges.
struct ConvolutionDims {
  ConvolutionDims(ShardingRule &rule, ArrayRef<int64_t> in, ArrayRef<int64_t> window, ArrayRef<int64_t> out,
                  int64_t groups)
      : rule(rule) {
    n = add(in[0]);
    DimFactors g = add(groups);
    o = add(out[1] / groups), c = add(window[1]);
    auto join = [](DimFactors major, const DimFactors &minor) {
      major.append(minor);
      return major;
    };
    input = {n, join(g, c)};
    filter = {join(g, o), c};
    output = {n, join(g, o)};
    for (auto [dims, shape] : {std::pair(&input, in), {&filter, window}, {&output, out}})
      for (int64_t size : shape.drop_front(2))
        dims->push_back(add(size, FactorKind::NeedReplication));
    // Inside several groups, the channels of one are no contiguous part of the dim.
    if (groups > 1)
      for (DimFactors *channels : {&o, &c})
        setKind(*channels, FactorKind::NeedReplication);
  }

  DimFactors add(int64_t size, FactorKind kind = FactorKind::Parallel) {
    return size == 1 ? DimFactors() : DimFactors{rule.addFactor(size, kind)};
  }
  void setKind(const DimFactors &dim, FactorKind kind) {
    for (unsigned factor : dim)
      rule.factors[factor].kind = kind;
  }
  /// The factor is in both operands and not in the result.
  void contract(const DimFactors &dim) {
    for (unsigned factor : dim)
      if (rule.factors[factor].kind == FactorKind::Parallel)
        rule.factors[factor].kind = FactorKind::Sum;
  }

  ShardingRule &rule;
  DimFactors n, o, c;
  SmallVector<DimFactors> input, filter, output;
};

/// The local op has the groups of its channels.
FailureOr<SmallVector<Value>> localizeGroups(Operation *op, OpBuilder &builder, const LocalizeContext &context,
                                             RankedTensorType input, RankedTensorType filter) {
  FailureOr<SmallVector<Value>> local = localizeByCloning(op, builder, context);
  if (succeeded(local))
    local->front().getDefiningOp()->setInherentAttr(
        builder.getStringAttr("groups"), builder.getI64IntegerAttr(input.getDimSize(1) / filter.getDimSize(1)));
  return local;
}
struct ConvolutionRule : ShardingRuleOpInterface::ExternalModel<ConvolutionRule, ConvolutionOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto convolution = cast<ConvolutionOp>(op);
    ShardingRule rule;
    ConvolutionDims dims(rule, shapeOf(convolution.getOperand()), shapeOf(convolution.getFilter()),
                         shapeOf(convolution.getResult()), convolution.getGroups());
    dims.contract(dims.c);
    rule.operands = {dims.input, dims.filter};
    rule.results = {dims.output};
    rule.linear = {{0}, {1}};
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizeGroups(op, builder, context, typeOf(context.operands[0]), typeOf(context.operands[1]));
  }
};

struct InputGradRule : ShardingRuleOpInterface::ExternalModel<InputGradRule, ConvolutionInputGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto grad = cast<ConvolutionInputGradOp>(op);
    ShardingRule rule;
    ConvolutionDims dims(rule, shapeOf(grad.getResult()), shapeOf(grad.getFilter()), shapeOf(grad.getCotangent()),
                         grad.getGroups());
    dims.contract(dims.o);
    rule.operands = {dims.output, dims.filter};
    rule.results = {dims.input};
    rule.linear = {{0}, {1}};
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizeGroups(op, builder, context, context.localTypes[0], typeOf(context.operands[1]));
  }
};

struct FilterGradRule : ShardingRuleOpInterface::ExternalModel<FilterGradRule, ConvolutionFilterGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto grad = cast<ConvolutionFilterGradOp>(op);
    ShardingRule rule;
    ConvolutionDims dims(rule, shapeOf(grad.getOperand()), shapeOf(grad.getResult()), shapeOf(grad.getCotangent()),
                         grad.getGroups());
    dims.contract(dims.n);
    rule.operands = {dims.input, dims.output};
    rule.results = {dims.filter};
    rule.linear = {{0}, {1}};
    return rule;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op, OpBuilder &builder, const LocalizeContext &context) const {
    return localizeGroups(op, builder, context, typeOf(context.operands[0]), context.localTypes[0]);
  }
};

/// Leading dims are parallel, those that windows slide over whole.
ShardingRule getWindowRule(Operation *op, int64_t leading) {
  ShardingRule rule;
  SmallVector<DimFactors> shared;
  for (int64_t size : shapeOf(op->getOperand(0)).take_front(leading))
    shared.push_back(size == 1 ? DimFactors() : DimFactors{rule.addFactor(size)});
  auto extend = [&](Value value) {
    SmallVector<DimFactors> dims = shared;
    for (int64_t size : shapeOf(value).drop_front(leading))
      dims.push_back(size == 1 ? DimFactors() : DimFactors{rule.addFactor(size, FactorKind::NeedReplication)});
    return dims;
  };
  for (Value operand : op->getOperands())
    rule.operands.push_back(extend(operand));
  rule.results.push_back(extend(op->getResult(0)));
  return rule;
}

int64_t rankOf(Value value) { return shapeOf(value).size(); }

struct PatchesRule : ShardingRuleOpInterface::ExternalModel<PatchesRule, PatchesOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto patches = cast<PatchesOp>(op);
    ShardingRule rule = getWindowRule(op, rankOf(patches.getOperand()) - int64_t(patches.getWindow().size()));
    auto real = dyn_cast<FloatAttr>(patches.getValue());
    auto integer = dyn_cast<IntegerAttr>(patches.getValue());
    if ((real && real.getValue().isZero()) || (integer && integer.getValue().isZero()))
      rule.linear = {{0}};
    return rule;
  }
};

struct FoldPatchesRule : ShardingRuleOpInterface::ExternalModel<FoldPatchesRule, FoldPatchesOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto fold = cast<FoldPatchesOp>(op);
    ShardingRule rule = getWindowRule(op, rankOf(fold.getResult()) - int64_t(fold.getStrides().size()));
    rule.linear = {{0}};
    return rule;
  }
};

struct MaxPoolRule : ShardingRuleOpInterface::ExternalModel<MaxPoolRule, MaxPoolOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return getWindowRule(op, rankOf(op->getResult(0)) - int64_t(cast<MaxPoolOp>(op).getWindow().size()));
  }
};

struct MaxPoolGradRule : ShardingRuleOpInterface::ExternalModel<MaxPoolGradRule, MaxPoolGradOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule =
        getWindowRule(op, rankOf(op->getResult(0)) - int64_t(cast<MaxPoolGradOp>(op).getWindow().size()));
    rule.linear = {{0}};
    return rule;
  }
};

} // namespace

void registerWindowRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConvolutionOp, ConvolutionRule>(*context);
    attachOnce<ConvolutionInputGradOp, InputGradRule>(*context);
    attachOnce<ConvolutionFilterGradOp, FilterGradRule>(*context);
    attachOnce<PatchesOp, PatchesRule>(*context);
    attachOnce<FoldPatchesOp, FoldPatchesRule>(*context);
    attachOnce<MaxPoolOp, MaxPoolRule>(*context);
    attachOnce<MaxPoolGradOp, MaxPoolGradRule>(*context);
  });
}

} // namespace par
