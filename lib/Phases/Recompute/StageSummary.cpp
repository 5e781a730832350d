#include "StageSummary.h"
#include "RecomputeTime.h"
#include "ResidualList.h"

#include "par/Base/TypeSize.h"
#include "par/Dialect/Space.h"

using namespace mlir;

namespace par {

/// Bytes of one microbatch that forward hands to backward by way of host memory.
static int64_t countMovedBytes(const FragmentPair &pair) {
  FragmentOp forward = pair.getForward();
  int64_t bytes = 0;
  for (auto [index, value] : llvm::enumerate(forward.getBlock().getTerminator()->getOperands()))
    bytes += isMoved(forward, index) ? getByteSize(value) : 0;
  return bytes;
}

StageRecompute summarizeRewrite(std::vector<StagePair> &stages, bool keepOperands, const CostTable &costs,
                                llvm::function_ref<void(StageRecompute &)> rewrite) {
  StageRecompute outcome{nameStages(stages)};
  ResidualList before(stages, costs);
  for (const StagePair &stage : stages) {
    outcome.allBytes += countResidualBytes(stage, keepOperands);
    outcome.ns -= timeOfFragment(stage.pair.getBackward(), costs);
  }
  rewrite(outcome);
  for (const StagePair &stage : stages) {
    int64_t moved = stage.inFlight * countMovedBytes(stage.pair);
    outcome.movedBytes += moved;
    outcome.savedBytes += stage.inFlight * getByteSize(stage.pair.getResiduals().getArrayRef()) - moved;
    outcome.ns += timeOfFragment(stage.pair.getBackward(), costs);
  }
  outcome.recomputed = before.findRecomputed(stages);
  return outcome;
}

} // namespace par
