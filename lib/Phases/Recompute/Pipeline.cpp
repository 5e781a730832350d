// The order of Recompute's passes.
#include "par/Phases/Recompute/Passes.h"

using namespace mlir;

namespace par {

static void buildPipeline(OpPassManager &manager, const RecomputeValuesPassOptions &options,
                          ArrayRef<std::string> excess, bool moves, RecomputeOutcomes *outcomes) {
  manager.addPass(createRecomputeValuesPass(options, outcomes));
  if (!excess.empty()) {
    RecomputeToFitPassOptions fit;
    fit.excess.assign(excess.begin(), excess.end());
    fit.schedule = options.schedule;
    fit.keepOperands = options.keepOperands;
    fit.hardware = options.hardware;
    fit.moves = moves;
    manager.addPass(createRecomputeToFitPass(fit, outcomes));
  }
  manager.addPass(createSplitBackwardPass({options.schedule}));
  manager.addPass(createVerifyRecomputePass({options.keepOperands}));
}

void buildRecomputePipeline(OpPassManager &manager, const Plan &plan, RecomputeOutcomes *outcomes) {
  const PlanRecompute &recompute = plan.recompute;
  RecomputeValuesPassOptions options;
  options.mode = recompute.hasBudget() ? "none" : PlanRecompute::nameOf(*recompute.kind).str();
  options.schedule = *plan.pipeline.schedule;
  for (const PatternWithOrigin &pattern : recompute.patterns)
    options.patterns.push_back(pattern.pattern.text().str());
  options.keepOperands = *plan.target.device == "cuda";
  options.hardware = *plan.target.hardware;
  SmallVector<std::string> excess;
  for (const auto &[role, bytes] : recompute.excess)
    excess.push_back(role + "=" + std::to_string(bytes));
  buildPipeline(manager, options, excess, plan.offload.saved, outcomes);
}

namespace {
struct RecomputeSettings : PassPipelineOptions<RecomputeSettings> {
  Option<std::string> mode{*this, "mode", llvm::cl::desc("none, full, selective, each, values or keep"),
                           llvm::cl::init("none")};
  ListOption<std::string> patterns{*this, "patterns", llvm::cl::desc("of each, values and keep")};
  ListOption<std::string> excess{*this, "excess", llvm::cl::desc("STAGE=BYTES by which ranks exceed their limit")};
  Option<std::string> hardware{*this, "hardware", llvm::cl::desc("a hardware file"), llvm::cl::init("cpu")};
  Option<std::string> schedule{*this, "schedule", llvm::cl::desc("a schedule of the solver, or the path of a table"),
                               llvm::cl::init("1f1b")};
  Option<std::string> device{*this, "device",
                             llvm::cl::desc("cpu, or cuda, on which the forward's matmul operands stay saved"),
                             llvm::cl::init("cpu")};
  Option<bool> moves{*this, "moves", llvm::cl::desc("saved values may go to host memory"), llvm::cl::init(false)};
};
} // namespace

void registerRecomputePipeline() {
  PassPipelineRegistration<RecomputeSettings>(
      "par-recompute", "recomputes values in backward, and splits off weight gradients",
      [](OpPassManager &manager, const RecomputeSettings &settings) {
        RecomputeValuesPassOptions options;
        options.mode = settings.mode;
        options.patterns.assign(settings.patterns.begin(), settings.patterns.end());
        options.hardware = settings.hardware;
        options.schedule = settings.schedule;
        options.keepOperands = settings.device == "cuda";
        buildPipeline(manager, options, SmallVector<std::string>(settings.excess.begin(), settings.excess.end()),
                      settings.moves, /*outcomes=*/nullptr);
      });
}

} // namespace par
