// The order of Decompose's passes. Chunks first: each chunk of a gather is then flattened.
#include "par/Phases/Decompose/Passes.h"

using namespace mlir;

namespace par {

void buildDecomposePipeline(OpPassManager &manager, const DecomposeCollectivesPassOptions &options) {
  manager.addPass(createDecomposeCollectivesPass(options));
  manager.addPass(createFlattenCollectivesPass());
  manager.addPass(createVerifyDecomposePass());
}

namespace {
struct DecomposeSettings : PassPipelineOptions<DecomposeSettings> {
  Option<int64_t> chunks{*this, "chunks", llvm::cl::desc("of each pair; 0: as many as save time, 1: none"),
                         llvm::cl::init(0)};
  Option<std::string> hardware{*this, "hardware", llvm::cl::desc("hardware file that costs are predicted from"),
                               llvm::cl::init("cpu")};
};
} // namespace

void registerDecomposePipeline() {
  PassPipelineRegistration<DecomposeSettings>("par-decompose", "collectives into those that the runtime executes",
                                              [](OpPassManager &manager, const DecomposeSettings &settings) {
                                                buildDecomposePipeline(manager, {settings.chunks, settings.hardware});
                                              });
}

} // namespace par
