#include "par/Dialect/Splat.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SAFESOFTMAXPASS
#include "par/Phases/Train/Passes.h.inc"

/// The softmax that `select` reads with 0 in place of NaN, if nothing else reads it.
static SoftmaxOp readReplaced(SelectOp select) {
  auto test = select.getCondition().getDefiningOp<IsNanOp>();
  auto softmax = select.getOnFalse().getDefiningOp<SoftmaxOp>();
  bool replaces = test && softmax && test.getOperand() == softmax.getResult() && readSplat(select.getOnTrue()) == 0.0;
  return replaces && test.getResult().hasOneUse() && softmax.getResult().hasNUses(2) ? softmax : SoftmaxOp();
}

namespace {
struct SafeSoftmaxPass : impl::SafeSoftmaxPassBase<SafeSoftmaxPass> {
  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>())
      for (SelectOp select : llvm::make_early_inc_range(step.getBlock().getOps<SelectOp>()))
        if (SoftmaxOp softmax = readReplaced(select)) {
          Operation *test = select.getCondition().getDefiningOp();
          softmax.setSafe(true);
          select.replaceAllUsesWith(softmax.getResult());
          select.erase();
          test->erase();
        }
  }
};
} // namespace

} // namespace par
