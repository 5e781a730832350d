// The order of Split's passes: microbatches, then stages, then fragments.
#include "mlir/Transforms/Passes.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;

namespace par {

void buildSplitPipeline(OpPassManager &manager, const SplitOptions &options) {
  manager.addPass(createDistributeGradientsPass());
  SliceMicrobatchesPassOptions slice;
  slice.microbatches = options.microbatches;
  manager.addPass(createSliceMicrobatchesPass(slice));
  manager.addPass(createAssignStagesPass());
  if (options.behind.empty()) { // else what is made of a version of the weights is made where that one is used
    LiftInvariantsPassOptions lift;
    lift.maxBytes = options.keptBytes;
    manager.addPass(createLiftInvariantsPass(lift));
  }
  manager.addPass(createFormFragmentsPass());
  if (!options.behind.empty()) {
    DelayReadsPassOptions delay;
    delay.behind.assign(options.behind.begin(), options.behind.end());
    delay.calls = options.calls;
    manager.addPass(createDelayReadsPass(delay));
  }
  // What Train built once a parameter (norm, clipping factor) a stage now has several times over.
  manager.addNestedPass<FragmentOp>(createCSEPass());
  manager.addPass(createVerifySplitPass());
}

namespace {
struct SplitSettings : PassPipelineOptions<SplitSettings> {
  Option<int64_t> microbatches{*this, "microbatches", llvm::cl::desc("microbatches a step"), llvm::cl::init(1)};
  Option<int64_t> kept{*this, "kept-bytes",
                       llvm::cl::desc("most that a stage keeps of what is computed once a step; 0: no limit"),
                       llvm::cl::init(0)};
  ListOption<int64_t> behind{*this, "behind", llvm::cl::desc("updates that the parameters of each stage are behind")};
  Option<int64_t> calls{*this, "calls", llvm::cl::desc("batches between two flushes"), llvm::cl::init(1)};
};
} // namespace

void registerSplitPipeline() {
  PassPipelineRegistration<SplitSettings>(
      "par-split", "one step into a loop over microbatches and fragments of stages",
      [](OpPassManager &manager, const SplitSettings &settings) {
        buildSplitPipeline(
            manager,
            {settings.microbatches, settings.kept, {settings.behind.begin(), settings.behind.end()}, settings.calls});
      });
}

} // namespace par
