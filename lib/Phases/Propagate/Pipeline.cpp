// The order of Propagate's passes.
#include "par/Phases/Propagate/Passes.h"

using namespace mlir;

namespace par {

void buildPropagatePipeline(OpPassManager &manager, const PropagateOptions &options) {
  manager.addPass(createPropagateShardingsPass({options.batchAxes, options.parameterAxes, options.gradientAxes,
                                                options.stateAxes, options.minSize, options.gatherOnce}));
  manager.addPass(createExpandCompositesPass({options.batchAxes, options.parameterAxes, options.gradientAxes,
                                              options.stateAxes, options.minSize, options.gatherOnce}));
  manager.addPass(createDropAbsentAxesPass());
  manager.addPass(createVerifyPropagatePass());
}

namespace {
struct PropagateSettings : PassPipelineOptions<PropagateSettings> {
  ListOption<std::string> batchAxes{*this, "batch-axes", llvm::cl::desc("axes that cut the batch of every input")};
  ListOption<std::string> parameterAxes{*this, "parameter-axes",
                                        llvm::cl::desc("axes that spread parameters where they are stored")};
  ListOption<std::string> gradientAxes{*this, "gradient-axes",
                                       llvm::cl::desc("axes that spread accumulated gradients")};
  ListOption<std::string> stateAxes{*this, "state-axes", llvm::cl::desc("axes that spread states and updates")};
  Option<int64_t> minSize{*this, "min-size", llvm::cl::desc("parameters of fewer elements are not spread"),
                          llvm::cl::init(0)};
  Option<bool> gatherOnce{*this, "gather-once", llvm::cl::desc("spread parameters are gathered once a step"),
                          llvm::cl::init(false)};
};
} // namespace

void registerPropagatePipeline() {
  PassPipelineRegistration<PropagateSettings>("par-propagate", "some shardings into one for each value",
                                              [](OpPassManager &manager, const PropagateSettings &settings) {
                                                PropagateOptions options;
                                                auto axes = [](const auto &list) {
                                                  return SmallVector<std::string>(list.begin(), list.end());
                                                };
                                                options.batchAxes = axes(settings.batchAxes);
                                                options.parameterAxes = axes(settings.parameterAxes);
                                                options.gradientAxes = axes(settings.gradientAxes);
                                                options.stateAxes = axes(settings.stateAxes);
                                                options.minSize = settings.minSize;
                                                options.gatherOnce = settings.gatherOnce;
                                                buildPropagatePipeline(manager, options);
                                              });
}

} // namespace par
