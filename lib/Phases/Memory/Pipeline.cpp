// The order of Memory's passes.
#include "par/Phases/Memory/Passes.h"

using namespace mlir;

namespace par {

void buildMemoryPipeline(OpPassManager &manager, const MemoryOptions &options) {
  if (!options.offload) // copies between device and host begin and end in the block
    manager.addPass(createDeferDonesPass());
  AssignBuffersPassOptions assign;
  assign.growState = !options.offload; // copies between device and host are of a state's own rows
  manager.addPass(createAssignBuffersPass(assign));
  if (options.offload)
    manager.addPass(createOffloadPass(*options.offload));
  PackMemoryPassOptions pack;
  pack.limit = options.limit;
  pack.greedy = options.greedy;
  manager.addPass(createPackMemoryPass(pack));
  manager.addPass(createVerifyMemoryPass());
}

namespace {
struct MemorySettings : PassPipelineOptions<MemorySettings> {
  Option<int64_t> limit{*this, "limit", llvm::cl::desc("bytes a rank may use; 0: unlimited"), llvm::cl::init(0)};
};
} // namespace

void registerMemoryPipeline() {
  PassPipelineRegistration<MemorySettings>("par-memory", "values into offsets of one arena for each rank",
                                           [](OpPassManager &manager, const MemorySettings &settings) {
                                             MemoryOptions options;
                                             options.limit = settings.limit;
                                             buildMemoryPipeline(manager, options);
                                           });
}

} // namespace par
