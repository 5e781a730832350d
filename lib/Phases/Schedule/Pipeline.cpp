// The order of Schedule's passes.
#include "par/Phases/Schedule/Passes.h"

using namespace mlir;

namespace par {

void buildSchedulePipeline(OpPassManager &manager, const BuildProgramsPassOptions &options) {
  manager.addPass(createBuildProgramsPass(options));
  manager.addPass(createVerifySchedulePass());
}

namespace {
struct ScheduleSettings : PassPipelineOptions<ScheduleSettings> {
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("order of forwards and backwards: a schedule of the solver, or the path of a table"),
      llvm::cl::init("1f1b")};
  Option<std::string> hardware{*this, "hardware", llvm::cl::desc("hardware file that costs are predicted from"),
                               llvm::cl::init("cpu")};
};
} // namespace

void registerSchedulePipeline() {
  PassPipelineRegistration<ScheduleSettings>("par-schedule", "fragments and an order into one program for each role",
                                             [](OpPassManager &manager, const ScheduleSettings &settings) {
                                               buildSchedulePipeline(manager, {settings.schedule, settings.hardware});
                                             });
}

} // namespace par
