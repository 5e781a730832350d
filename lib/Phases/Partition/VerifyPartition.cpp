#include "par/Dialect/Par.h"
#include "par/Phases/Partition/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYPARTITIONPASS
#include "par/Phases/Partition/Passes.h.inc"

static LogicalResult verifyFragment(FragmentOp fragment) {
  if (!fragment.getLocal())
    return fragment.emitError() << "is not local after Partition";
  for (Operation &op : fragment.getBlock()) {
    auto shardings = dyn_cast_or_null<ArrayAttr>(op.getInherentAttr("shardings").value_or(Attribute()));
    if (shardings && !shardings.empty())
      return op.emitError() << "still carries a sharding after Partition";
    if (isa<ConstrainOp>(op))
      return op.emitError() << "is not allowed in a local fragment";
  }
  return success();
}

namespace {
struct VerifyPartitionPass : impl::VerifyPartitionPassBase<VerifyPartitionPass> {
  void runOnOperation() override {
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (failed(verifyFragment(fragment)))
        return signalPassFailure();
    WalkResult result = getOperation().walk([](ReshardOp reshard) -> WalkResult {
      return reshard.emitError() << "is not allowed in a step after Partition";
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

} // namespace par
