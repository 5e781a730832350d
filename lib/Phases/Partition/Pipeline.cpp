// The order of Partition's passes.
#include "par/Phases/Partition/Passes.h"

using namespace mlir;

namespace par {

void buildPartitionPipeline(OpPassManager &manager, const PartitionOptions &options) {
  if (options.scatter)
    manager.addPass(createScatterTransfersPass({*options.scatter}));
  manager.addPass(createNestTransfersPass());
  PartitionFragmentsPassOptions priced;
  priced.hardware = options.hardware;
  priced.parameterAxes = llvm::to_vector(options.parameterAxes);
  manager.addPass(createPartitionFragmentsPass(priced));
  if (options.mixed)
    manager.addPass(createNarrowActivationsPass());
  if (options.accumulate != "f32" || options.reduce != "f32")
    manager.addPass(createNarrowGradientsPass({options.accumulate, options.reduce}));
  manager.addPass(createVerifyPartitionPass());
  manager.addPass(createVerifyInvariantsPass({options.parameterAxes, options.gatherOnce}));
}

namespace {
struct PartitionSettings : PassPipelineOptions<PartitionSettings> {
  Option<std::string> hardware{*this, "hardware", llvm::cl::desc("hardware file that costs are predicted from"),
                               llvm::cl::init("cpu")};
  Option<std::string> accumulate{*this, "accumulate", llvm::cl::desc("f32 or bf16: gradients summed over microbatches"),
                                 llvm::cl::init("f32")};
  Option<std::string> reduce{*this, "reduce", llvm::cl::desc("f32 or bf16: gradients summed over ranks"),
                             llvm::cl::init("f32")};
  Option<bool> mixed{*this, "mixed", llvm::cl::desc("matmuls are computed in a narrower format than f32"),
                     llvm::cl::init(false)};
};
} // namespace

void registerPartitionPipeline() {
  PassPipelineRegistration<PartitionSettings>(
      "par-partition", "global shapes into local ones, with all communication",
      [](OpPassManager &manager, const PartitionSettings &settings) {
        buildPartitionPipeline(
            manager, {settings.hardware, settings.accumulate, settings.reduce, {}, false, settings.mixed, {}});
      });
}

} // namespace par
