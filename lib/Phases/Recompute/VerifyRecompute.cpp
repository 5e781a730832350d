#include "FragmentPair.h"
#include "par/Phases/Recompute/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYRECOMPUTEPASS
#include "par/Phases/Recompute/Passes.h.inc"

namespace {
struct VerifyRecomputePass : impl::VerifyRecomputePassBase<VerifyRecomputePass> {
  using VerifyRecomputePassBase::VerifyRecomputePassBase;

  LogicalResult verifyFragment(FragmentOp fragment) {
    for (Operation &op : fragment.getBlock().without_terminator())
      if (op.use_empty() && isMemoryEffectFree(&op))
        return op.emitError() << "is unused after Recompute";
    return success();
  }

  /// Every value that the backward takes from the forward costs something to compute.
  LogicalResult verifyPair(const FragmentPair &pair) {
    llvm::SetVector<Value> residuals = pair.getResiduals();
    llvm::DenseSet<Value> cheap = pair.findCheap(residuals, keepOperands);
    for (Value value : residuals) {
      if (!cheap.contains(value))
        continue;
      InFlightDiagnostic error = pair.getForward().emitError();
      if (isa<BlockArgument>(value))
        return error << "saves its own argument " << cast<BlockArgument>(value).getArgNumber() << " for the backward";
      error << "saves a value for the backward that costs nothing to compute";
      error.attachNote(value.getLoc()) << "this one";
      return error;
    }
    return success();
  }

  void runOnOperation() override {
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (fragment.getLocal() && failed(verifyFragment(fragment)))
        return signalPassFailure();
    for (const FragmentPair &pair : FragmentPair::findAll(getOperation()))
      if (failed(verifyPair(pair)))
        return signalPassFailure();
  }
};
} // namespace

} // namespace par
