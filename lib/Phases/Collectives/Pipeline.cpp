// The order of Collectives' passes: operands early, fewer, then beside compute, then in levels.
#include "par/Phases/Collectives/Passes.h"

using namespace mlir;

namespace par {

void buildCollectivesPipeline(OpPassManager &manager, const CollectivesOptions &options) {
  if (options.overlap)
    manager.addPass(createAdvanceOperandsPass());
  manager.addPass(createBucketCollectivesPass({options.bucket}));
  if (options.overlap) {
    manager.addPass(createOverlapCollectivesPass());
    manager.addPass(createSplitCollectivesPass({options.window}));
  }
  manager.addPass(createLevelCollectivesPass({options.hierarchical, options.hardware, options.said}));
  manager.addPass(createVerifyCollectivesPass({options.overlap}));
}

namespace {
struct CollectivesSettings : PassPipelineOptions<CollectivesSettings> {
  Option<int64_t> bucket{*this, "bucket", llvm::cl::desc("bytes of a bucket; 0: one value each"),
                         llvm::cl::init(26214400)};
  Option<bool> overlap{*this, "overlap", llvm::cl::desc("what can run beside compute does"), llvm::cl::init(true)};
  Option<unsigned> window{*this, "window", llvm::cl::desc("how many of a kind may be under way"), llvm::cl::init(1)};
  Option<bool> hierarchical{*this, "hierarchical", llvm::cl::desc("in two levels everywhere"), llvm::cl::init(false)};
  Option<std::string> hardware{*this, "hardware", llvm::cl::desc("hardware file that costs are predicted from"),
                               llvm::cl::init("cpu")};
};
} // namespace

void registerCollectivesPipeline() {
  PassPipelineRegistration<CollectivesSettings>(
      "par-collectives", "collectives into fewer ones that run beside compute",
      [](OpPassManager &manager, const CollectivesSettings &settings) {
        buildCollectivesPipeline(manager, {settings.bucket, settings.overlap, settings.window, settings.hierarchical,
                                           settings.hardware, ""});
      });
}

} // namespace par
