// Moves the cut between forward and backward: saves the values that the plan's `recompute` names, or only the inputs of
// the named modules, and recomputes the rest in the backward. Values that cost nothing to compute are never saved.
#include "FragmentPair.h"
#include "par/Base/Provenance.h"
#include "par/Base/TypeSize.h"
#include "par/Dialect/Calls.h"
#include "par/Phases/Recompute/Passes.h"
#include "par/Phases/Recompute/Recompute.h"
#include "par/Plan/Language/Pattern.h"
#include "par/Solver/Order/OrderTable.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_RECOMPUTEVALUESPASS
#include "par/Phases/Recompute/Passes.h.inc"

/// The outermost module around an op that matches a pattern; "" if none does.
static StringRef findInstance(Operation *op, ArrayRef<NamePattern> patterns) {
  std::optional<Provenance> from = op ? getProvenance(op->getLoc()) : std::nullopt;
  if (!from)
    return "";
  size_t end = 0;
  for (StringRef segment : splitName(from->module)) {
    end += segment.size() + (end ? 1 : 0);
    StringRef name = from->module.take_front(end);
    if (llvm::any_of(patterns, [&](const NamePattern &pattern) { return pattern.matchesName(name); }))
      return name;
  }
  return "";
}

/// The values that a pair saves if modules save only their inputs: residuals outside modules, and values that enter a
/// module.
static llvm::SetVector<Value> findInputs(const FragmentPair &pair, ArrayRef<NamePattern> patterns) {
  llvm::SetVector<Value> saved;
  llvm::SetVector<Value> residuals = pair.getResiduals();
  for (Operation &op : pair.getForward().getBlock().without_terminator()) {
    StringRef inside = findInstance(&op, patterns);
    if (inside.empty()) {
      for (Value result : op.getResults())
        if (residuals.contains(result))
          saved.insert(result);
      continue;
    }
    for (Value operand : op.getOperands())
      if (operand.getDefiningOp() && findInstance(operand.getDefiningOp(), patterns) != inside)
        saved.insert(operand);
  }
  return saved;
}

/// Number of microbatches that each stage has in flight.
static SmallVector<int64_t> countInFlight(ModuleOp module, int64_t microbatches, StringRef schedule) {
  unsigned stages = llvm::range_size(module.getOps<StageOp>()), devices = getStagesByRanks(module).size();
  SmallVector<int64_t> counts(stages, 1);
  auto found = countInFlight(schedule, stages, devices, microbatches);
  if (!found)
    llvm::consumeError(found.takeError());
  else
    counts.assign(found->begin(), found->end());
  return counts;
}

static int64_t countInFlight(const FragmentPair &pair, StringRef schedule) {
  FragmentOp forward = pair.getForward();
  auto module = forward->getParentOfType<ModuleOp>();
  auto loop = pair.getBackwardRun()->getParentOfType<LoopOp>();
  SmallVector<int64_t> counts =
      countInFlight(module, loop.getCount() * getCalls(loop->getParentOfType<StepOp>()), schedule);
  for (auto [count, stage] : llvm::zip(counts, module.getOps<StageOp>()))
    if (stage.getSymName() == forward.getStage())
      return count;
  return 1;
}

SmallVector<StageResiduals> summarizeResiduals(ModuleOp module, StringRef schedule) {
  SmallVector<StageResiduals> result;
  for (const FragmentPair &pair : FragmentPair::findAll(module)) {
    StageResiduals &stage = result.emplace_back();
    stage.stage = pair.getForward().getStage().str();
    stage.inFlight = countInFlight(pair, schedule);
    stage.savedBytes = getByteSize(pair.getResiduals().getArrayRef());
  }
  std::map<std::string, unsigned> order;
  for (auto [index, stage] : llvm::enumerate(module.getOps<StageOp>()))
    order[stage.getSymName().str()] = index;
  llvm::stable_sort(result, [&](const StageResiduals &left, const StageResiduals &right) {
    return order[left.stage] < order[right.stage];
  });
  return result;
}

/// Saves nothing that costs nothing to compute.
static void sink(FragmentPair &pair, bool keepOperands, int64_t inFlight) {
  for (llvm::DenseSet<Value> cheap = pair.findCheap(pair.getResiduals(), keepOperands, inFlight); !cheap.empty();
       cheap = pair.findCheap(pair.getResiduals(), keepOperands, inFlight)) {
    llvm::SetVector<Value> saved = pair.getResiduals();
    pair.recompute([&](Value value) { return saved.contains(value) && !cheap.contains(value); });
  }
}

namespace {
struct RecomputeValuesPass : impl::RecomputeValuesPassBase<RecomputeValuesPass> {
  using Base::Base;

  LogicalResult parse(SmallVectorImpl<NamePattern> &patterns) {
    if (!llvm::is_contained({"none", "full", "each"}, StringRef(mode)))
      return getOperation().emitError() << "recompute mode is '" << mode << "', expected none, full or each";
    for (const std::string &text : each) {
      std::string why;
      auto pattern = NamePattern::parse(text, why);
      if (!pattern)
        return getOperation().emitError() << "pattern '" << text << "': " << why;
      patterns.push_back(*pattern);
    }
    return success();
  }

  void runOnOperation() override {
    SmallVector<NamePattern> patterns;
    if (failed(parse(patterns)))
      return signalPassFailure();
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      if (fragment.getLocal())
        eraseDeadOps(fragment.getBlock());
    for (FragmentPair &pair : FragmentPair::findAll(getOperation())) {
      int64_t inFlight = countInFlight(pair, schedule);
      if (mode == "full" && inFlight > 1)
        pair.recompute([](Value) { return false; });
      if (mode == "each") {
        llvm::SetVector<Value> saved = findInputs(pair, patterns);
        llvm::DenseSet<Value> cheap = pair.findCheap(saved, keepOperands, inFlight);
        pair.recompute([&](Value value) { return saved.contains(value) && !cheap.contains(value); });
      }
      sink(pair, keepOperands, inFlight);
    }
  }
};
} // namespace

} // namespace par
