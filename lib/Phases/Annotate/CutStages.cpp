// Gives every forward op its pipeline stage: from the modules or nodes that the plan names (`start`, `repeat`), or else
// from the cut with the shortest estimated step (Solver/StageCut). Ops between hints get the stage of the last cut that
// they depend on.
#include "CutCosts.h"
#include "PlanSource.h"
#include "StagePlacement.h"

#include "par/Base/Provenance.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CUTSTAGESPASS
#include "par/Phases/Annotate/Passes.h.inc"

namespace {

/// Cuts one forward step.
class Cutter {
public:
  Cutter(StepOp step, const ModelPlan &model, ModuleOp module, const CutPricer &pricer)
      : step(step), model(model), module(module), pricer(pricer), placement(step, module) {}

  LogicalResult run();

private:
  LogicalResult hintByStarts(const PlanPipeline &pipeline);
  LogicalResult hintByRepeat(const PlanPipeline &pipeline);
  LogicalResult hintByCost();
  void joinTail(std::vector<OpGroup> &groups);
  void hintInside(const PatternMatches &matches, int64_t stage);
  void hintBehind(StringRef start, int64_t stage);
  LogicalResult checkNotEmpty();

  InFlightDiagnostic error(const Origin &origin) { return emitError(planLocation(origin, module)); }

  StepOp step;
  const ModelPlan &model;
  ModuleOp module;
  const CutPricer &pricer; ///< null: prices are of single ops
  StagePlacement placement;
};

} // namespace

/// Places everything in the matched modules, or the matched nodes if no module matches, on `stageIndex` or later.
void Cutter::hintInside(const PatternMatches &matches, int64_t stageIndex) {
  for (Operation *op : placement.ops()) {
    std::optional<Provenance> from = getProvenance(op->getLoc());
    if (!from)
      continue;
    bool inside = llvm::any_of(matches.modules, [&](unsigned index) {
      StringRef name = model.names.modules[index];
      return from->module == name || from->module.starts_with((name + ".").str());
    });
    if (matches.modules.empty())
      inside = llvm::any_of(matches.nodes, [&](unsigned index) { return from->path == model.names.nodes[index].name; });
    if (inside)
      placement.hint(op, stageIndex);
  }
}

/// Whether a module comes later in a numbered stack, or in one around it: h.3.mlp after h.2.attn.
static bool comesLater(StringRef module, StringRef start) {
  for (auto [mine, its] : llvm::zip(splitName(module), splitName(start))) {
    unsigned number = 0, least = 0;
    if (mine != its)
      return !mine.getAsInteger(10, number) && !its.getAsInteger(10, least) && number > least;
  }
  return false;
}

/// Later modules of the same stack are on this stage too, even if no value of its start flows into them: the keys of a
/// second decoder layer depend only on the encoder.
void Cutter::hintBehind(StringRef start, int64_t stageIndex) {
  bool isBehind = false;
  for (Operation *op : placement.ops()) {
    isBehind |= placement.hintOf(op) >= stageIndex;
    std::optional<Provenance> from = getProvenance(op->getLoc());
    if (isBehind && from && comesLater(from->module, start))
      placement.hint(op, stageIndex);
  }
}

LogicalResult Cutter::hintByStarts(const PlanPipeline &pipeline) {
  for (auto [index, start] : llvm::enumerate(pipeline.starts)) {
    PatternMatches matches = matchPattern(start.pattern, model.names);
    size_t count = matches.modules.empty() ? matches.nodes.size() : matches.modules.size();
    if (count != 1)
      return error(start.origin) << "cut \"" << start.pattern.text() << "\" means " << count
                                 << " modules or nodes; a cut names the one that starts the next stage";
    hintInside(matches, index + 1);
    hintBehind(matches.modules.empty() ? StringRef(model.names.nodes[matches.nodes[0]].name).split('/').first
                                       : StringRef(model.names.modules[matches.modules[0]]),
               index + 1);
  }
  return success();
}

/// Deals the matching modules out in their order.
LogicalResult Cutter::hintByRepeat(const PlanPipeline &pipeline) {
  std::vector<unsigned> modules = matchPattern(pipeline.repeat->pattern, model.names).modules;
  int64_t stages = *pipeline.stages, count = modules.size();
  SmallVector<int64_t> counts(pipeline.counts.begin(), pipeline.counts.end());
  if (*pipeline.cuts == PlanPipeline::Even)
    for (int64_t index = 0; index < stages; ++index)
      counts.push_back(count / stages + (index < count % stages));
  int64_t sum = 0;
  for (int64_t each : counts)
    sum += each;
  if (count < stages)
    return error(pipeline.repeat->origin) << "\"" << pipeline.repeat->pattern.text() << "\" matches " << count
                                          << " modules, fewer than the " << stages << " stages";
  if (sum != count)
    return error(pipeline.repeat->origin) << "\"" << pipeline.repeat->pattern.text() << "\" matches " << count
                                          << " modules; the counts of " << stages << " stages add up to " << sum;
  size_t next = 0;
  for (auto [index, each] : llvm::enumerate(counts))
    for (int64_t i = 0; i < each; ++i) {
      PatternMatches one;
      one.modules.push_back(modules[next++]);
      hintInside(one, index);
    }
  return success();
}

/// Lets the groups after the last parameter (a loss, a pooling) join its stage, while enough groups are left for all
/// stages. A last stage without parameters would hold nothing, wait for the scores and train nothing.
void Cutter::joinTail(std::vector<OpGroup> &groups) {
  auto readsParameter = [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      auto read = operand.getDefiningOp<ReadOp>();
      return read && placement.isWeight(read);
    });
  };
  while (groups.size() > size_t(*model.plan.pipeline.stages) && llvm::none_of(groups.back(), readsParameter)) {
    OpGroup tail = std::move(groups.back());
    groups.pop_back();
    llvm::append_range(groups.back(), tail);
  }
}

/// Solves for the cut with the shortest estimated step.
LogicalResult Cutter::hintByCost() {
  std::vector<OpGroup> groups = groupForCuts(placement.ops(), *model.plan.pipeline.stages);
  joinTail(groups);
  auto fail = [&](llvm::Error reason) -> LogicalResult {
    return error(model.plan.pipeline.cuts.origin)
           << "no cut into " << *model.plan.pipeline.stages << " stages: " << llvm::toString(std::move(reason))
           << "; try more stages or ranks, more bytes (target.memory), or cuts of your own (pipeline.cuts)";
  };
  SmallVector<ArrayRef<int64_t>> ranks;
  for (StageOp stage : module.getOps<StageOp>())
    ranks.push_back(stage.getRanks());
  llvm::Expected<CostTable> costs = CostTable::find(*model.plan.target.hardware);
  if (!costs)
    return fail(costs.takeError());
  FailureOr<CutPrices> prices = failure();
  if (pricer)
    prices = priceKernels(module, placement.ops(), groups, model.plan, pricer);
  if (failed(prices))
    prices = priceOps(step, groups, model.plan, *costs);
  llvm::Expected<StageCutProblem> problem = makeCutProblem(step, groups, model.plan, *costs, *prices, ranks);
  if (!problem)
    return fail(problem.takeError());
  if (llvm::Error wrong = problem->check())
    return fail(std::move(wrong));
  llvm::Expected<StageCut> cut = problem->solve();
  if (!cut)
    return fail(cut.takeError());
  for (auto [group, stageIndex] : llvm::zip(groups, cut->stageOf))
    for (Operation *op : group)
      placement.hint(op, stageIndex);
  return success();
}

LogicalResult Cutter::checkNotEmpty() {
  int64_t stages = *model.plan.pipeline.stages;
  SmallVector<int64_t> count(stages, 0);
  for (Operation *op : placement.ops())
    ++count[placement.stageOf(op)];
  const PlanPipeline &pipeline = model.plan.pipeline;
  for (int64_t index = 0; index < stages && stages > 1; ++index) {
    if (count[index])
      continue;
    InFlightDiagnostic diagnostic = error(pipeline.cuts.origin)
                                    << "the cuts leave stage " << index << " without an op that a parameter flows into";
    if (index > 0 && size_t(index) < pipeline.starts.size())
      diagnostic.attachNote() << "cuts must be in the model's order: \"" << pipeline.starts[index].pattern.text()
                              << "\" starts stage " << index + 1 << ", but \""
                              << pipeline.starts[index - 1].pattern.text() << "\", which would start stage " << index
                              << ", depends on it";
    return diagnostic;
  }
  return success();
}

LogicalResult Cutter::run() {
  const PlanPipeline &pipeline = model.plan.pipeline;
  LogicalResult hinted = success();
  if (*pipeline.stages > 1)
    switch (*pipeline.cuts) {
    case PlanPipeline::AutoCuts:
      hinted = hintByCost();
      break;
    case PlanPipeline::Starts:
      hinted = hintByStarts(pipeline);
      break;
    case PlanPipeline::Even:
    case PlanPipeline::Counts:
      hinted = hintByRepeat(pipeline);
      break;
    }
  if (failed(hinted))
    return failure();
  placement.assign(*pipeline.stages);
  return checkNotEmpty();
}

namespace {
struct CutStagesPass : PlanPass<impl::CutStagesPassBase<CutStagesPass>> {
  using PlanPass::PlanPass;
  CutPricer pricer;

  LogicalResult apply(const ModelPlan &model) override {
    ModuleOp module = getOperation();
    bool byCost = *model.plan.pipeline.cuts == PlanPipeline::AutoCuts;
    SmallVector<StepOp> steps(module.getOps<StepOp>());
    for (StepOp step : byCost ? ArrayRef(steps).take_front(1) : ArrayRef(steps))
      if (failed(Cutter(step, model, module, pricer).run()))
        return failure();
    return success();
  }
};
} // namespace

std::unique_ptr<Pass> createCutStagesPass(const ModelPlan &plan, const CutPricer &pricer) {
  std::unique_ptr<Pass> pass = makePlanPass<CutStagesPass>(plan);
  static_cast<CutStagesPass &>(*pass).pricer = pricer;
  return pass;
}

} // namespace par
