#include "par/Dialect/Par.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYSPLITPASS
#include "par/Phases/Split/Passes.h.inc"

/// Only the seven step ops and their terminators, on values that know their stage.
static LogicalResult verifyStep(StepOp step) {
  WalkResult result = step.getBody().walk([&](Operation *op) -> WalkResult {
    if (!isa<ReadOp, WriteOp, LoopOp, RunOp, TransferOp, ReshardOp, StageAllReduceOp, YieldOp, ReturnOp>(op))
      return op->emitOpError() << "may not stand in a step after Split; it belongs in a fragment";
    for (Type type : op->getResultTypes())
      if (!isa<DistType>(type))
        return op->emitOpError() << "gives " << type << " after Split, expected a !par.dist";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// A fragment touches no variable.
static LogicalResult verifyFragment(FragmentOp fragment) {
  WalkResult result = fragment.getBody().walk([&](Operation *op) -> WalkResult {
    if (isa<ReadOp, WriteOp, LoopOp, RunOp, TransferOp, ReshardOp, StageAllReduceOp, CotangentOp, GradientOp>(op))
      return op->emitOpError() << "may not stand in a fragment";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifySplitPass : impl::VerifySplitPassBase<VerifySplitPass> {
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
