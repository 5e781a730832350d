// The order of Annotate's passes.
#include "par/Phases/Annotate/Passes.h"

using namespace mlir;

namespace par {

void buildAnnotatePipeline(OpPassManager &manager, const ModelPlan &plan, const CutPricer &pricer) {
  manager.addPass(createCreateStagesPass(plan));
  manager.addPass(createAnnotateVariablesPass(plan));
  manager.addPass(createConstrainValuesPass(plan));
  // Behind the constraints, so that these are on stages too.
  manager.addPass(createCutStagesPass(plan, pricer));
  manager.addPass(createAlignStagesPass());
  manager.addPass(createVerifyAnnotatePass());
}

namespace {
struct AnnotateSettings : PassPipelineOptions<AnnotateSettings> {
  ListOption<std::string> plan{*this, "plan", llvm::cl::desc("plan files, left to right")};
};
} // namespace

void registerAnnotatePipeline() {
  PassPipelineRegistration<AnnotateSettings>(
      "par-annotate", "a plan into stages, shardings of variables and constraints",
      [](OpPassManager &manager, const AnnotateSettings &settings) {
        SmallVector<std::string> files(settings.plan.begin(), settings.plan.end());
        manager.addPass(createCreateStagesPass(CreateStagesPassOptions{files}));
        manager.addPass(createAnnotateVariablesPass(AnnotateVariablesPassOptions{files}));
        manager.addPass(createConstrainValuesPass(ConstrainValuesPassOptions{files}));
        manager.addPass(createCutStagesPass(CutStagesPassOptions{files}));
        manager.addPass(createAlignStagesPass());
        manager.addPass(createVerifyAnnotatePass());
      });
}

} // namespace par
