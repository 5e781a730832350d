// Recomputes the cheapest values by which ranks hold so many bytes less, and predicts what more would cost.
#include "Choice/BudgetChoice.h"
#include "StageSummary.h"

#include "par/Dialect/Space.h"
#include "par/Phases/Recompute/Passes.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_RECOMPUTETOFITPASS
#include "par/Phases/Recompute/Passes.h.inc"

static void emitChoice(ModuleOp module, const StageRecompute &outcome) {
  InFlightDiagnostic remark = emitRemark(module.getLoc());
  remark << "s" << outcome.stages << " saves " << outcome.savedBytes << " of " << outcome.allBytes << " bytes, ";
  if (outcome.movedBytes > 0)
    remark << "moves " << outcome.movedBytes << " and loses " << outcome.unhiddenNs << " ns by it, ";
  remark << "recomputes " << outcome.chosenNs - outcome.unhiddenNs << " ns, at least "
         << outcome.minNs - outcome.unhiddenNs << " ns; ";
  if (!outcome.fits)
    remark << "no smaller choice was found; ";
  else if (outcome.moreNs >= 0)
    remark << outcome.nextBytes << " bytes less for " << outcome.moreNs << " ns; ";
  remark << "every choice saves " << outcome.boundBytes << " bytes";
}

static void emitFront(ModuleOp module, const StageRecompute &outcome) {
  for (const RecomputePoint &point : outcome.front)
    emitRemark(module.getLoc()) << "s" << outcome.stages << " at " << llvm::formatv("{0:f6}", point.nsPerByte)
                                << " ns a byte: saves " << point.savedBytes << " bytes, recomputes " << point.ns
                                << " ns";
}

/// For Schedule, whose buffers of these are in host memory.
static void markMoved(FragmentOp forward, const ValueSet &moved) {
  for (auto [index, value] : llvm::enumerate(forward.getBlock().getTerminator()->getOperands()))
    if (moved.contains(value))
      forward.setResultAttr(index, movedAttr, UnitAttr::get(forward.getContext()));
}

namespace {
struct RecomputeToFitPass : impl::RecomputeToFitPassBase<RecomputeToFitPass> {
  using Base::Base;

  LogicalResult parse() {
    for (const std::string &text : excess) {
      auto [role, bytes] = StringRef(text).split('=');
      // A role of several stages, "s0+2", is known by its first one.
      StringRef stage = role.take_front(1 + role.drop_front().take_while(llvm::isDigit).size());
      int64_t count = 0;
      if (bytes.getAsInteger(10, count) || count < 0)
        return getOperation().emitError() << "excess is '" << text << "', expected STAGE=BYTES";
      int64_t &known = excessOf[stage];
      known = std::max(known, count);
    }
    llvm::Expected<CostTable> found = CostTable::find(hardware);
    if (!found)
      return getOperation().emitError() << llvm::toString(found.takeError());
    costs = *found;
    return success();
  }

  /// Saves the chosen values, and finds the cost of a smaller choice.
  void choose(std::vector<StagePair> &stages, int64_t over, StageRecompute &outcome) {
    BudgetChoice choice(stages, costs, moves);
    BudgetChoice::Outcome chosen = choice.choose(choice.saveAll().bytes - over), least = choice.findSmallest();
    constexpr int64_t gibibyte = int64_t(1) << 30;
    outcome.isChosen = true;
    outcome.chosenNs = chosen.ns;
    outcome.minNs = chosen.minNs;
    outcome.unhiddenNs = chosen.unhiddenNs;
    outcome.fits = chosen.fits;
    outcome.smallestBytes = least.bytes;
    outcome.boundBytes = choice.getBoundBytes();
    outcome.nextBytes = std::min(gibibyte, (chosen.bytes - least.bytes) / 2);
    if (chosen.fits && outcome.nextBytes > 0)
      if (auto next = choice.choose(chosen.bytes - outcome.nextBytes); next.fits)
        outcome.moreNs = next.ns - chosen.ns;
    for (auto [stage, saved, moved] : llvm::zip(stages, chosen.kept.saved, chosen.kept.moved)) {
      ValueSet kept = saved;
      kept.insert(moved.begin(), moved.end());
      recomputeAllBut(stage, kept, keepOperands);
      markMoved(stage.pair.getForward(), moved);
    }
  }

  StageRecompute fit(std::vector<StagePair> &stages) {
    std::optional<int64_t> over;
    for (const StagePair &stage : stages)
      if (auto found = excessOf.find(stage.pair.getForward().getStage()); found != excessOf.end())
        over = std::max(over.value_or(0), found->second);
    return summarizeRewrite(stages, keepOperands, costs, [&](StageRecompute &outcome) {
      if (over == 0)
        outcome.front = BudgetChoice(stages, costs, moves).findFront();
      else if (over)
        choose(stages, *over, outcome);
    });
  }

  void runOnOperation() override {
    if (failed(parse()))
      return signalPassFailure();
    RecomputeOutcomes found;
    for (std::vector<StagePair> &stages : findPairsByRanks(getOperation(), schedule)) {
      found.push_back(fit(stages));
      if (remarks && found.back().isChosen)
        emitChoice(getOperation(), found.back());
      if (remarks)
        emitFront(getOperation(), found.back());
    }
    if (outcomes)
      *outcomes = std::move(found);
  }

  RecomputeOutcomes *outcomes = nullptr;

private:
  llvm::StringMap<int64_t> excessOf; ///< by stage
  CostTable costs;
};
} // namespace

std::unique_ptr<Pass> createRecomputeToFitPass(const RecomputeToFitPassOptions &options, RecomputeOutcomes *outcomes) {
  auto pass = std::make_unique<RecomputeToFitPass>(options);
  pass->outcomes = outcomes;
  return pass;
}

} // namespace par
