// The order of Recompute's passes.
#include "par/Phases/Recompute/Passes.h"

using namespace mlir;

namespace par {

static void buildPipeline(OpPassManager &manager, const RecomputeValuesPassOptions &options) {
  manager.addPass(createRecomputeValuesPass(options));
  manager.addPass(createSplitBackwardPass({options.schedule}));
  manager.addPass(createVerifyRecomputePass({options.keepOperands}));
}

void buildRecomputePipeline(OpPassManager &manager, const PlanRecompute &recompute, StringRef schedule,
                            StringRef device) {
  static constexpr const char *modes[] = {"none", "full", "each"};
  RecomputeValuesPassOptions options;
  options.mode = modes[*recompute.kind];
  options.schedule = schedule.str();
  if (recompute.each)
    options.each = {recompute.each->pattern.text().str()};
  options.keepOperands = device == "cuda";
  buildPipeline(manager, options);
}

namespace {
struct RecomputeSettings : PassPipelineOptions<RecomputeSettings> {
  Option<std::string> mode{*this, "mode", llvm::cl::desc("none, full or each"), llvm::cl::init("none")};
  ListOption<std::string> each{*this, "each", llvm::cl::desc("patterns of modules of which only the inputs are saved")};
  Option<std::string> schedule{*this, "schedule", llvm::cl::desc("a schedule of the solver, or the path of a table"),
                               llvm::cl::init("1f1b")};
  Option<std::string> device{*this, "device",
                             llvm::cl::desc("cpu, or cuda, on which the forward's matmul operands stay saved"),
                             llvm::cl::init("cpu")};
};
} // namespace

void registerRecomputePipeline() {
  PassPipelineRegistration<RecomputeSettings>("par-recompute",
                                              "recomputes values in backward, and splits off weight gradients",
                                              [](OpPassManager &manager, const RecomputeSettings &settings) {
                                                RecomputeValuesPassOptions options;
                                                options.mode = settings.mode;
                                                options.each.assign(settings.each.begin(), settings.each.end());
                                                options.schedule = settings.schedule;
                                                options.keepOperands = settings.device == "cuda";
                                                buildPipeline(manager, options);
                                              });
}

} // namespace par
