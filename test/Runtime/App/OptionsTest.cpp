// Flags that come from elsewhere than the command line.
#include "par/app/Options.h"
#include "par/messages/Failure.h"

#include <gtest/gtest.h>

using namespace par;

namespace {

// The environment's device is that of all runs of a test suite.
TEST(Options, takesTheDeviceOfTheEnvironment) {
  auto with = [](const char *environment, std::vector<std::string> flags) {
    flags.insert(flags.begin(), "a.par");
    core::RunOptions options = core::parseOptions(flags);
    core::takeDevice(options, environment);
    return options;
  };
  core::RunOptions options = with("sim:20:7", {});
  EXPECT_EQ(options.device, "sim");
  EXPECT_EQ(options.interleavings, 20u);
  EXPECT_EQ(options.simSeed, 7u);
  EXPECT_EQ(with("sim", {}).device, "sim");
  EXPECT_EQ(with("sim:20", {"--device", "cpu"}).device, "cpu");
  EXPECT_EQ(with("sim:20", {"--comm", "shm"}).device, "");
  EXPECT_EQ(with("", {}).device, "");
  try {
    with("abacus", {});
    ADD_FAILURE();
  } catch (const core::Failure &failure) {
    EXPECT_STREQ(failure.what(), "par-run: error: PAR_DEVICE takes cpu or sim, not \"abacus\"");
  }
}

} // namespace
