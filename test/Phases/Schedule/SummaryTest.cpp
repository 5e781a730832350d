#include "par/Phases/Schedule/Passes.h"
#include "par/Phases/Schedule/Schedule.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace par;

namespace {

SmallVector<StageSummary> summarize(StringRef schedule) {
  DialectRegistry registry;
  registerDialect(registry);
  MLIRContext context(registry);
  auto module = parseSourceFile<ModuleOp>(PAR_SOURCE_DIR "/test/Phases/Schedule/depth.mlir", &context);
  PassManager manager(&context);
  BuildProgramsPassOptions options;
  options.schedule = schedule.str();
  buildSchedulePipeline(manager, options);
  EXPECT_TRUE(module && succeeded(manager.run(*module)));
  return summarizePrograms(*module, "train");
}

} // namespace

// One tensor of 64 floats is saved for each microbatch in flight: 4, 3, 2, 1 under 1f1b.
TEST(Summary, OneForwardOneBackwardKeepsFewerOnLaterStages) {
  auto stages = summarize("1f1b");
  ASSERT_EQ(stages.size(), 4u);
  for (int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(stages[stage].stage, "s" + std::to_string(stage));
    EXPECT_EQ(stages[stage].inFlight, 4 - stage);
    EXPECT_EQ(stages[stage].stateBytes, 0);
  }
  for (int64_t stage = 0; stage < 3; ++stage)
    EXPECT_EQ(stages[stage].savedBytes, (4 - stage) * 64 * 4);
  // The last stage's backward takes its output, too.
  EXPECT_EQ(stages[3].savedBytes, 2 * 64 * 4);
}

TEST(Summary, GpipeKeepsAll) {
  for (const StageSummary &stage : summarize("gpipe"))
    EXPECT_EQ(stage.inFlight, 8);
}
