// The order of Kernels' passes.
#include "par/Phases/Kernels/KernelGroups.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

static void buildGroupingPipeline(OpPassManager &manager, const std::string &device,
                                  const std::optional<OrderMicrobatchesPassOptions> &order) {
  manager.addPass(createInlineFragmentsPass());
  manager.addPass(createCarryInPlacePass());
  if (order)
    manager.addPass(createOrderMicrobatchesPass(*order));
  manager.addPass(createExpandMatmulsPass({device}));
  manager.addPass(createExpandConvolutionsPass());
  if (device == "cuda") {
    manager.addPass(createSeparateStridesPass());
    manager.addPass(createPadsToConcatPass());
  } else {
    manager.addPass(createChannelsLastPass());
  }
  manager.addPass(createPropagateHeadLayoutsPass());
  manager.addPass(createAccumulateInPlacePass());
  if (device == "cuda")
    manager.addPass(createPadRowsPass());
  manager.addPass(createPromoteToF32Pass({device}));
}

void buildGroupingPipeline(OpPassManager &manager, const std::string &device) {
  buildGroupingPipeline(manager, device, std::nullopt);
}

void buildKernelsPipeline(OpPassManager &manager, const std::string &device,
                          const std::optional<OrderMicrobatchesPassOptions> &order) {
  buildGroupingPipeline(manager, device, order);
  FormKernelsPassOptions form;
  form.device = device;
  manager.addPass(createFormKernelsPass(form));
  manager.addPass(createVerifyKernelsPass());
}

namespace {
struct KernelsSettings : PassPipelineOptions<KernelsSettings> {
  Option<std::string> device{*this, "device", llvm::cl::desc("device of the kernels: cpu or cuda"),
                             llvm::cl::init("cpu")};
};
} // namespace

void registerKernelsPipeline() {
  PassPipelineRegistration<KernelsSettings>(
      "par-kernels", "fragments into blocks, tensor ops into kernels and calls",
      [](OpPassManager &manager, const KernelsSettings &settings) { buildKernelsPipeline(manager, settings.device); });
}

} // namespace par
