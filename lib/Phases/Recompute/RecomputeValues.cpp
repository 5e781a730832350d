// Moves the cut between forward and backward: saves the values that the mode of the plan's `recompute` saves, and
// recomputes the rest in the backward. Cheap values are never saved.
#include "SavedValues.h"
#include "StageSummary.h"

#include "par/Phases/Recompute/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_RECOMPUTEVALUESPASS
#include "par/Phases/Recompute/Passes.h.inc"

namespace {
struct RecomputeValuesPass : impl::RecomputeValuesPassBase<RecomputeValuesPass> {
  using Base::Base;

  LogicalResult parse() {
    if (!llvm::is_contained({"none", "full", "selective", "each", "values", "keep"}, StringRef(mode)))
      return getOperation().emitError() << "recompute mode is '" << mode
                                        << "', expected none, full, selective, each, values or keep";
    for (const std::string &text : patterns) {
      std::string why;
      auto pattern = NamePattern::parse(text, why);
      if (!pattern)
        return getOperation().emitError() << "pattern '" << text << "': " << why;
      named.push_back(*pattern);
    }
    llvm::Expected<CostTable> found = CostTable::find(hardware);
    if (!found)
      return getOperation().emitError() << llvm::toString(found.takeError());
    costs = *found;
    return success();
  }

  ValueSet findSaved(const StagePair &stage) {
    if (mode == "full")
      return saveSegmentInputs(stage.pair, stage.inFlight);
    if (mode == "selective")
      return saveAroundAttention(stage.pair);
    if (mode == "each")
      return saveModuleInputs(stage.pair, named);
    return mode == "values" ? saveOthers(stage.pair, named) : saveMatching(stage.pair, named);
  }

  StageRecompute recompute(std::vector<StagePair> &stages) {
    if (mode == "none")
      for (StagePair &stage : stages)
        recomputeCheap(stage, keepOperands);
    return summarizeRewrite(stages, keepOperands, costs, [&](StageRecompute &) {
      if (mode != "none")
        for (StagePair &stage : stages)
          recomputeAllBut(stage, findSaved(stage), keepOperands);
    });
  }

  void runOnOperation() override {
    if (failed(parse()))
      return signalPassFailure();
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (fragment.getLocal())
        eraseDeadOps(fragment.getBlock());
    RecomputeOutcomes found;
    for (std::vector<StagePair> &stages : findPairsByRanks(getOperation(), schedule)) {
      found.push_back(recompute(stages));
      if (remarks)
        emitRemark(getOperation().getLoc())
            << "s" << found.back().stages << " saves " << found.back().savedBytes << " of " << found.back().allBytes
            << " bytes, backward takes " << found.back().ns << " ns more";
    }
    if (outcomes)
      *outcomes = mode == "none" ? RecomputeOutcomes() : std::move(found);
  }

  RecomputeOutcomes *outcomes = nullptr;

private:
  SmallVector<NamePattern> named;
  CostTable costs;
};
} // namespace

std::unique_ptr<Pass> createRecomputeValuesPass(const RecomputeValuesPassOptions &options,
                                                RecomputeOutcomes *outcomes) {
  auto pass = std::make_unique<RecomputeValuesPass>(options);
  pass->outcomes = outcomes;
  return pass;
}

} // namespace par
