#include "Grouping.h"
#include "par/Phases/Collectives/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "par/Phases/Collectives/Passes.h.inc"

namespace {
struct OverlapCollectivesPass : impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  void runOnBlock(BlockOp block) {
    for (AllReduceOp reduce : llvm::to_vector(block.getOps<AllReduceOp>())) {
      Operation *made = lastOperand(reduce);
      if (!made || isScalar(reduce) || !onlyLeaves(reduce) || firstNeed(reduce))
        continue;
      reduce.setQueue("data");
      moveBehind(reduce, made);
    }
  }

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        runOnBlock(block);
  }
};
} // namespace

} // namespace par
