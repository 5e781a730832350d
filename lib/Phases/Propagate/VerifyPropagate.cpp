#include "par/Phases/Propagate/FactorAxes.h"
#include "par/Phases/Propagate/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYPROPAGATEPASS
#include "par/Phases/Propagate/Passes.h.inc"

static LogicalResult verifyClosed(Operation *at, ShardingAttr sharding, const Twine &what) {
  if (!sharding)
    return at->emitError() << what << " has no sharding after Propagate";
  if (llvm::any_of(sharding.getDims(), [](DimShardingAttr dim) { return dim.getOpen(); }))
    return at->emitError() << what << " has an open sharding after Propagate: " << sharding;
  return success();
}

static LogicalResult verifyStep(StepOp step) {
  WalkResult result = step.walk([&](Operation *op) -> WalkResult {
    for (OpResult value : op->getResults())
      if (auto dist = dyn_cast<DistType>(value.getType()); failed(
              verifyClosed(op, dist ? dist.getSharding() : ShardingAttr(), "result " + Twine(value.getResultNumber()))))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifyFragment(FragmentOp fragment) {
  for (BlockArgument argument : fragment.getArguments())
    if (failed(verifyClosed(fragment, getSharding(argument), "argument " + Twine(argument.getArgNumber()))))
      return failure();
  MeshAttr mesh = getMesh(fragment, fragment.getStageAttr());
  for (Operation &op : fragment.getBlock().without_terminator()) {
    for (OpResult result : op.getResults())
      if (failed(verifyClosed(&op, getSharding(result), "result " + Twine(result.getResultNumber()))))
        return failure();
    auto interface = dyn_cast<ShardingRuleOpInterface>(op);
    if (!interface)
      continue;
    ShardingRule rule = interface.getShardingRule();
    for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands)) {
      SmallVector<Axes> axes(rule.factors.size());
      projectToFactors(rule, dims, getDimAxes(getSharding(operand)), mesh, axes);
      for (auto [factor, list] : llvm::zip(rule.factors, axes))
        if (!list.empty() && factor.kind == FactorKind::Decompose)
          return op.emitError() << "still has its factor " << factor.name
                                << " cut; -par-expand-composites takes it apart";
    }
  }
  return success();
}

namespace {
struct VerifyPropagatePass : impl::VerifyPropagatePassBase<VerifyPropagatePass> {
  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody()) {
      if (auto step = dyn_cast<StepOp>(op); step && failed(verifyStep(step)))
        return signalPassFailure();
      if (auto fragment = dyn_cast<FragmentOp>(op); fragment && failed(verifyFragment(fragment)))
        return signalPassFailure();
    }
  }
};
} // namespace

} // namespace par
