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

/// Results of an asynchronous collective may be used only by par.done or later on its queue, or leave the block.
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
                             << "is asynchronous in block @" << block << ", which uses its results";
  error.attachNote(need->getLoc()) << "needed here";
  return error;
}

/// A collective that need not block compute must be asynchronous.
LogicalResult VerifyCollectivesPass::verifyWaiting(Operation *collective, StringRef block) {
  if (!overlap || isScalar(collective) || !lastOperand(collective) ||
      cast<CollectiveOpInterface>(collective).getLevel())
    return success(); // the first level may start where the collective was
  if (!firstNeed(collective))
    return collective->emitError() << "only leaves block @" << block << ", but is synchronous after Collectives";
  if (sourcesOf(collective))
    return collective->emitError() << "could start earlier in block @" << block
                                   << ", but is synchronous after Collectives";
  return success();
}

} // namespace par
