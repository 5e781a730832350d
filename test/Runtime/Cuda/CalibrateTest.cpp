// par-run --calibrate on the stub GPU: the device's queue is measured from outside, and no rate is a real one.
#include "CudaToolFixture.h"

#include "ToyBundles.h"
#include "app/Calibration.h"
#include "par/comm/job/Launch.h"

#include <regex>

using namespace par;

namespace {

TEST_F(CudaTool, calibratesByTheGpusQueue) {
  core::Job job;
  job.bundle = forCuda(toy::pipeline(1));
  job.name = folder / "toy.par";
  std::string file = folder / "gpu.yaml";
  job.options.calibrate = file;
  job.options.comm = "inproc";
  job.options.quiet = job.options.noTuning = true;
  comm::Launch launch;
  launch.bundle = job.name;
  launch.n = launch.bundleRanks = 2;
  launch.transport = comm::Transport::inproc;
  int code = comm::run(launch, [&](comm::Control &control) {
    try {
      return core::runCalibration(job, control, {64 << 10, 16});
    } catch (const core::Failure &failure) {
      ADD_FAILURE() << failure.what();
      control.fail(failure.exitCode(), failure.what());
    }
  });
  ASSERT_EQ(code, 0);
  std::string text = fileText(file);
  for (const char *pattern :
       {"\nisa: sm_90 ", "\noverlap: true ", "\ncores: 0 ",
        "\n# Kernels and matmuls: each many times, one after the other.\n",
        "\n    - \\[f32, nn, 1, 2, 4, 4, [1-9]\\d*\\]\n", "\n    - \\[f32, nn, 1, 16, 16, 16, [1-9]\\d*\\]\n",
        "\n    - \\[device, 131072, [1-9]\\d*\\]\n", "\n  sends: # .*\n    - \\[32, 1, [1-9]\\d*\\]\n"})
    EXPECT_TRUE(std::regex_search(text, std::regex(pattern))) << pattern << " is not in\n" << text;
}

} // namespace
