// par-run on a bundle for cuda, from its arguments to its metrics, on stub libraries.
#include "../Core/ToolFixture.h"
#include "CudaFixture.h"

using namespace par;

namespace {

class CudaTool : public Tool {
protected:
  void SetUp() override {
    Tool::SetUp();
    toy::useStubs();
    setenv("PAR_CUDA_BUILTINS", toy::builtinImageFile().c_str(), 1);
    stub::Machine::get().reset();
  }

  /// A toy as the compiler would make it for a GPU: slots begin at multiples of 256.
  static format::Bundle forCuda(format::Bundle bundle) {
    bundle.manifest.device = "cuda";
    bundle.manifest.needs = {"sm: 90"};
    for (format::Program &program : bundle.programs) {
      for (format::Buffer &buffer : program.buffers)
        for (uint64_t &at : buffer.at)
          at *= 4;
      program.arena.state *= 4;
      program.arena.pool *= 4;
    }
    for (format::Peak &peak : bundle.manifest.peak)
      peak.state *= 4, peak.pool *= 4;
    return bundle;
  }

  /// What the log says of steps, without times.
  std::string losses() const {
    std::string text;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);)
      if (size_t at = line.find("loss "); at != std::string::npos)
        text += line.substr(at, line.find("  ", at) - at) + "\n";
    return text;
  }
};

TEST_F(CudaTool, trainsAsOnTheCpu) {
  for (uint32_t ranks : {1u, 2u}) {
    std::vector<std::string> flags = {"--init",      "--text", folder / "text", "--steps", "4",
                                      "--log-every", "1",      "--comm",        "inproc"};
    std::vector<std::string> cpu = flags, cuda = flags;
    cpu.insert(cpu.begin(), write(toy::training(ranks), "cpu" + std::to_string(ranks)));
    cuda.insert(cuda.begin(), write(forCuda(toy::training(ranks)), "cuda" + std::to_string(ranks)));
    ASSERT_EQ(run(cpu), 0) << err;
    std::string expected = losses();
    EXPECT_NE(expected, "");
    ASSERT_EQ(run(cuda), 0) << err;
    EXPECT_EQ(losses(), expected);
    EXPECT_GT(stub::Machine::get().calls().size(), 50u);
  }
}

TEST_F(CudaTool, oneRankMayUseNccl) {
  std::string bundle = write(forCuda(toy::training()), "cuda");
  ASSERT_EQ(run({bundle, "--init", "--text", folder / "text", "--steps", "2", "--comm", "nccl"}), 0) << err;
  auto calls = stub::Machine::get().calls();
  EXPECT_TRUE(std::any_of(calls.begin(), calls.end(),
                          [](const stub::Call &call) { return call.name == "ncclCommInitRankConfig"; }));
}

TEST_F(CudaTool, whatDoesNotSuitAGpuIsRefused) {
  std::string bundle = write(forCuda(toy::training()), "cuda");
  EXPECT_EQ(run({bundle, "--init", "--text", folder / "text", "--comm", "shm"}), 2);
  expectSays("cuda.par: error: --comm shm and a bundle for cuda exclude each other");
}

} // namespace
