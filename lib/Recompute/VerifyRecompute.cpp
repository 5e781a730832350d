#include "Keeping.h"

#include "par/Recompute/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYRECOMPUTEPASS
#include "par/Recompute/Passes.h.inc"

/// Nothing is kept that the plan says to compute again.
static LogicalResult checkPair(RunPair pair, const Keeping &keeping) {
  FragmentOp source = fragmentOf(pair.forward);
  for (Value operand : pair.backward.getOperands()) {
    if (operand.getDefiningOp<RunOp>() != pair.forward)
      continue;
    unsigned index = cast<OpResult>(operand).getResultNumber();
    if (keeping.keeps(source.getTerminator()->getOperand(index)))
      continue;
    InFlightDiagnostic diagnostic = pair.backward.emitOpError("takes result ")
                                    << index << " of " << pair.forward.getFragmentAttr()
                                    << ", which is to be computed again";
    diagnostic.attachNote(pair.forward.getLoc()) << "kept from here";
    return diagnostic;
  }
  return success();
}

namespace {
struct VerifyRecomputePass : impl::VerifyRecomputePassBase<VerifyRecomputePass> {
  using VerifyRecomputePassBase::VerifyRecomputePassBase;

  LogicalResult check(StepOp step, const Keeping &keeping) {
    for (RunPair pair : findPairs(step))
      if (failed(checkPair(pair, keeping)))
        return failure();
    WalkResult result = step.walk([](RunOp run) -> WalkResult {
      if (fragmentOf(run).getKind() != FragmentKind::forward)
        return success();
      for (OpResult value : run.getResults())
        if (value.use_empty())
          return run.emitOpError("gives result ") << value.getResultNumber() << ", which nobody uses";
      return success();
    });
    return failure(result.wasInterrupted());
  }

  void runOnOperation() override {
    FailureOr<Keeping> keeping = Keeping::parse(getOperation(), mode, each);
    if (failed(keeping))
      return signalPassFailure();
    for (StepOp step : getOperation().getOps<StepOp>())
      if (failed(check(step, *keeping)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

} // namespace par
