// The order of Propagate's passes.
#include "par/Phases/Propagate/Passes.h"

using namespace mlir;

namespace par {

/// Both passes have the same options, since the expansion of composites propagates again for new ops.
template <typename PassOptions>
static PassOptions optionsOf(const PropagateOptions &options) {
  return {options.batchAxes,  options.parameterAxes, options.gradientAxes,  options.stateAxes,  options.minSize,
          options.gatherOnce, options.masters,       options.gradientRules, options.stateRules, options.priorities};
}

void buildPropagatePipeline(OpPassManager &manager, const PropagateOptions &options) {
  manager.addPass(createPropagateShardingsPass(optionsOf<PropagateShardingsPassOptions>(options)));
  manager.addPass(createExpandCompositesPass(optionsOf<ExpandCompositesPassOptions>(options)));
  manager.addPass(createDropAbsentAxesPass());
  manager.addPass(createVerifyPropagatePass());
}

namespace {
struct PropagateSettings : PassPipelineOptions<PropagateSettings> {
  ListOption<std::string> batchAxes{*this, "batch-axes", llvm::cl::desc("axes that shard the batch of every input")};
  ListOption<std::string> parameterAxes{*this, "parameter-axes", llvm::cl::desc("axes that shard stored parameters")};
  ListOption<std::string> gradientAxes{*this, "gradient-axes", llvm::cl::desc("axes that shard accumulated gradients")};
  ListOption<std::string> stateAxes{*this, "state-axes", llvm::cl::desc("axes that shard states and updates")};
  Option<int64_t> minSize{*this, "min-size", llvm::cl::desc("parameters of fewer elements are not sharded over these"),
                          llvm::cl::init(0)};
  Option<bool> gatherOnce{*this, "gather-once", llvm::cl::desc("sharded parameters are gathered once a step"),
                          llvm::cl::init(false)};
  Option<bool> masters{*this, "masters", llvm::cl::desc("rounded parameters are stored as their states are"),
                       llvm::cl::init(false)};
  ListOption<std::string> gradientRules{*this, "gradient-rules", llvm::cl::desc("layouts of single gradients")};
  ListOption<std::string> stateRules{*this, "state-rules", llvm::cl::desc("layouts of single parameters' states")};
  ListOption<std::string> priorities{*this, "priorities", llvm::cl::desc("priorities of single parameters")};
};
} // namespace

void registerPropagatePipeline() {
  PassPipelineRegistration<PropagateSettings>("par-propagate", "some shardings into one for each value",
                                              [](OpPassManager &manager, const PropagateSettings &settings) {
                                                PropagateOptions options;
                                                auto listOf = [](const auto &list) {
                                                  return SmallVector<std::string>(list.begin(), list.end());
                                                };
                                                options.batchAxes = listOf(settings.batchAxes);
                                                options.parameterAxes = listOf(settings.parameterAxes);
                                                options.gradientAxes = listOf(settings.gradientAxes);
                                                options.stateAxes = listOf(settings.stateAxes);
                                                options.minSize = settings.minSize;
                                                options.gatherOnce = settings.gatherOnce;
                                                options.masters = settings.masters;
                                                options.gradientRules = listOf(settings.gradientRules);
                                                options.stateRules = listOf(settings.stateRules);
                                                options.priorities = listOf(settings.priorities);
                                                buildPropagatePipeline(manager, options);
                                              });
}

} // namespace par
