// The order of Split's passes: metrics, microbatches, then stages, then fragments.
#include "mlir/Transforms/Passes.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;

namespace par {

void buildSplitPipeline(OpPassManager &manager, const SplitOptions &options) {
  DropCoupledMetricsPassOptions metrics;
  metrics.microbatches = options.microbatches;
  manager.addPass(createDropCoupledMetricsPass(metrics));
  manager.addPass(createCountResultsPass());
  manager.addPass(createDistributeGradientsPass());
  SliceMicrobatchesPassOptions slice;
  slice.microbatches = options.microbatches;
  manager.addPass(createSliceMicrobatchesPass(slice));
  manager.addPass(createAssignStagesPass());
  if (options.behind.empty()) { // else values computed from stale weights are computed at their use
    LiftInvariantsPassOptions lift;
    lift.maxBytes = options.keptBytes;
    lift.masters = options.masters.value_or(-1);
    manager.addPass(createLiftInvariantsPass(lift));
  }
  manager.addPass(createFormFragmentsPass());
  if (!options.behind.empty()) {
    DelayReadsPassOptions delay;
    delay.behind.assign(options.behind.begin(), options.behind.end());
    delay.calls = options.calls;
    manager.addPass(createDelayReadsPass(delay));
  }
  // Values that Train built once for each parameter (norm, clipping factor) are now repeated within a stage.
  manager.addNestedPass<FragmentOp>(createCSEPass());
  manager.addPass(createVerifySplitPass());
}

namespace {
struct SplitSettings : PassPipelineOptions<SplitSettings> {
  Option<int64_t> microbatches{*this, "microbatches", llvm::cl::desc("microbatches a step"), llvm::cl::init(1)};
  Option<int64_t> kept{*this, "kept-bytes",
                       llvm::cl::desc("maximum kept on a stage of values computed once a step; 0: no limit"),
                       llvm::cl::init(0)};
  Option<int64_t> masters{*this, "masters",
                          llvm::cl::desc("minimum elements of parameters that are always rounded before the loop"),
                          llvm::cl::init(-1)};
  ListOption<int64_t> behind{*this, "behind", llvm::cl::desc("staleness of each stage's parameters, in updates")};
  Option<int64_t> calls{*this, "calls", llvm::cl::desc("batches between two flushes"), llvm::cl::init(1)};
};
} // namespace

void registerSplitPipeline() {
  PassPipelineRegistration<SplitSettings>("par-split", "one step into a loop over microbatches and fragments of stages",
                                          [](OpPassManager &manager, const SplitSettings &settings) {
                                            SplitOptions options;
                                            options.microbatches = settings.microbatches;
                                            options.keptBytes = settings.kept;
                                            if (settings.masters >= 0)
                                              options.masters = settings.masters;
                                            options.behind.assign(settings.behind.begin(), settings.behind.end());
                                            options.calls = settings.calls;
                                            buildSplitPipeline(manager, options);
                                          });
}

} // namespace par
