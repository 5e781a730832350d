#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DECOMPOSEOPSPASS
#include "par/Phases/Train/Passes.h.inc"

/// Gives the ops of a decomposition the stage of `op`.
static void copyStage(Operation *op, Block::iterator first) {
  if (std::optional<int64_t> stage = getStage(op))
    for (Operation &part : llvm::make_range(first, op->getIterator()))
      setStage(&part, *stage);
}

static void decompose(DecomposableOpInterface op) {
  Operation *before = op->getPrevNode();
  OpBuilder builder(op);
  SmallVector<Value> values = op.decompose(builder);
  copyStage(op, before ? std::next(before->getIterator()) : op->getBlock()->begin());
  op->replaceAllUsesWith(values);
  op->erase();
}

namespace {
struct DecomposeOpsPass : impl::DecomposeOpsPassBase<DecomposeOpsPass> {
  void runOnOperation() override {
    SmallVector<DecomposableOpInterface> composites;
    getOperation().walk([&](DecomposableOpInterface op) { composites.push_back(op); });
    for (DecomposableOpInterface op : composites)
      decompose(op);
  }
};
} // namespace

} // namespace par
