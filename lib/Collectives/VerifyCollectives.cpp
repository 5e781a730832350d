#include "Reductions.h"
#include "par/Collectives/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYCOLLECTIVESPASS
#include "par/Collectives/Passes.h.inc"

namespace {
struct VerifyCollectivesPass : impl::VerifyCollectivesPassBase<VerifyCollectivesPass> {
  using VerifyCollectivesPassBase::VerifyCollectivesPassBase;

  LogicalResult verifyReduction(AllReduceOp reduce) {
    auto block = reduce->getParentOfType<BlockOp>();
    if (reduce.getNumResults() > mostMembers)
      return reduce.emitError() << "joins " << reduce.getNumResults() << " values in block @"
                                << block.getSymName() << ", a group takes " << mostMembers;
    Operation *need = onlyLeaves(reduce) ? firstNeed(reduce) : *reduce->getUsers().begin();
    if (reduce->hasAttr("queue") && need) {
      InFlightDiagnostic error = reduce.emitError() << "runs beside what follows in block @"
                                                    << block.getSymName() << ", which needs its results";
      error.attachNote(need->getLoc()) << "needed here";
      return error;
    }
    if (overlap && !reduce->hasAttr("queue") && !need && lastOperand(reduce) && !isScalar(reduce))
      return reduce.emitError() << "only leaves block @" << block.getSymName()
                                << ", but keeps what follows waiting after Collectives";
    return success();
  }

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        for (AllReduceOp reduce : block.getOps<AllReduceOp>())
          if (failed(verifyReduction(reduce)))
            return signalPassFailure();
  }
};
} // namespace

} // namespace par
