#include "Grouping.h"
#include "par/Phases/Collectives/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYCOLLECTIVESPASS
#include "par/Phases/Collectives/Passes.h.inc"

namespace {
struct VerifyCollectivesPass : impl::VerifyCollectivesPassBase<VerifyCollectivesPass> {
  using VerifyCollectivesPassBase::VerifyCollectivesPassBase;

  LogicalResult verifyBeside(Operation *collective, StringRef block);
  LogicalResult verifyWaiting(Operation *collective, StringRef block);

  LogicalResult verify(Operation *collective, StringRef block) {
    if (collective->getNumResults() > maxMembers)
      return collective->emitError() << "joins " << collective->getNumResults() << " values in block @" << block
                                     << ", a group takes " << maxMembers;
    return getQueue(collective).empty() ? verifyWaiting(collective, block) : verifyBeside(collective, block);
  }

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        for (Operation *collective : collectivesOf(block))
          if (failed(verify(collective, block.getSymName())))
            return signalPassFailure();
  }
};
} // namespace

/// What runs beside compute is used by its `done` alone and by what follows it on its queue, or leaves the block.
LogicalResult VerifyCollectivesPass::verifyBeside(Operation *collective, StringRef block) {
  Operation *need = nullptr;
  bool ends = llvm::any_of(collective->getUsers(), [](Operation *user) { return isa<DoneOp>(user); });
  bool goesOn = false; // on its queue, in order
  for (Operation *user : collective->getUsers()) {
    bool next = getQueue(user) == getQueue(collective);
    goesOn |= next;
    if (!next && !isa<DoneOp>(user) && (ends || !isa<StoreOp>(user)))
      need = user;
  }
  if (!ends && !goesOn && !need)
    need = firstNeed(collective);
  if (!need)
    return success();
  InFlightDiagnostic error = collective->emitError()
                             << "runs beside what follows in block @" << block << ", which needs its results";
  error.attachNote(need->getLoc()) << "needed here";
  return error;
}

/// Compute waits for what needs not keep it waiting.
LogicalResult VerifyCollectivesPass::verifyWaiting(Operation *collective, StringRef block) {
  if (!overlap || isScalar(collective) || !lastOperand(collective) ||
      cast<CollectiveOpInterface>(collective).getLevel())
    return success(); // of the levels of one the first may start where that one stood
  if (!firstNeed(collective))
    return collective->emitError() << "only leaves block @" << block
                                   << ", but keeps what follows waiting after Collectives";
  if (sourcesOf(collective))
    return collective->emitError() << "could start before what precedes it in block @" << block
                                   << ", but keeps it waiting after Collectives";
  return success();
}

} // namespace par
