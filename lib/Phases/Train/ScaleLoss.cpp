#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SCALELOSSPASS
#include "par/Phases/Train/Passes.h.inc"

/// A scalar that every stage counts for itself; `value` before the first step.
static LogicalResult declare(StepOp step, StringRef name, double value) {
  auto module = step->getParentOfType<ModuleOp>();
  if (Operation *taken = module.lookupSymbol(name)) {
    InFlightDiagnostic error = step.emitError() << "training needs a variable @" << name << " of its own";
    error.attachNote(taken->getLoc()) << "the name is taken here";
    return error;
  }
  OpBuilder outside(*module.getOps<StepOp>().begin());
  auto scalar = RankedTensorType::get({}, outside.getF32Type());
  VariableOp::create(outside, step.getLoc(), name, VariableKind::counter, FlatSymbolRefAttr(), scalar, TypeAttr(),
                     ShardingAttr(), ArrayAttr(), DenseElementsAttr::get(scalar, static_cast<float>(value)),
                     StringAttr(), DictionaryAttr());
  return success();
}

static LogicalResult scaleLoss(StepOp step, double initial) {
  if (!(initial > 0))
    return step.emitOpError() << "has the loss scale " << initial << ", expected a positive number";
  auto cotangents = step.getBlock().getOps<CotangentOp>();
  SmallVector<GradientOp> gradients(step.getBlock().getOps<GradientOp>());
  if (cotangents.empty() || gradients.empty())
    return success();
  if (failed(declare(step, "loss_scale", initial)) || failed(declare(step, "good_steps", 0)))
    return failure();
  CotangentOp cotangent = *cotangents.begin();
  auto scalar = RankedTensorType::get({}, Float32Type::get(step.getContext()));
  OpBuilder builder(step.getContext());
  builder.setInsertionPointToStart(&step.getBlock());
  Value scale = ReadOp::create(builder, step.getLoc(), scalar, "loss_scale");
  builder.setInsertionPoint(cotangent);
  cotangent.getSeedMutable().assign(
      buildConvert(builder, cotangent.getLoc(), scale, getElementTypeOrSelf(cotangent.getSeed().getType())));
  // Behind all gradients, which stay the scaled sums that they are.
  builder.setInsertionPointAfter(gradients.back());
  Term inverse = 1.0 / Term(builder, step.getLoc(), scale);
  for (GradientOp gradient : gradients) {
    Term g(builder, gradient.getLoc(), gradient);
    Value own = g * g.with(inverse).convert(g.getType().getElementType()).broadcast(g.getShape());
    gradient.getResult().replaceAllUsesExcept(own, own.getDefiningOp());
  }
  return success();
}

namespace {
struct ScaleLossPass : impl::ScaleLossPassBase<ScaleLossPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    if (step && failed(scaleLoss(step, initial)))
      signalPassFailure();
  }
};
} // namespace

} // namespace par
