// Algorithms of matmuls: timed by rank 0, used by all ranks, saved with the run, checked against this machine.
#include "CudaToolFixture.h"

#include <filesystem>
#include <regex>

using namespace par;

namespace {

class Tuning : public CudaTool {
protected:
  /// Trains and returns the numbers of the algorithms that each rank's matmuls used after the trial.
  std::set<std::string> used(std::vector<std::string> flags, uint32_t ranks = 2) {
    std::string name = "cuda" + std::to_string(ranks), bundle = folder / (name + ".par");
    if (!std::filesystem::exists(bundle))
      write(forCuda(toy::training(ranks)), name);
    std::vector<std::string> all = {bundle, "--text", folder / "text", "--log-every", "1", "--comm", "inproc"};
    all.insert(all.end(), flags.begin(), flags.end());
    machine.reset();
    machine.fastest = fastest;
    code = run(all);
    std::set<std::string> algorithms;
    // Rank 0's trial ends with the last time that it asks for.
    auto calls = machine.calls();
    auto isTime = [](const stub::Call &call) { return call.name == "cuEventElapsedTime"; };
    trials = static_cast<size_t>(std::count_if(calls.begin(), calls.end(), isTime));
    auto begin = std::find_if(calls.rbegin(), calls.rend(), isTime).base();
    for (auto call = trials ? begin : calls.begin(); call != calls.end(); ++call)
      if (call->name == "cublasLtMatmul")
        algorithms.insert(call->arguments.substr(call->arguments.rfind(' ') + 1));
    return algorithms;
  }

  void replace(const std::string &file, const std::string &pattern, const std::string &by) {
    std::ifstream in(file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::string changed = std::regex_replace(text, std::regex(pattern), by);
    EXPECT_NE(changed, text) << pattern;
    std::ofstream(file) << changed;
  }

  std::set<std::string> only(const char *number) { return {number}; }

  stub::Machine &machine = stub::Machine::get();
  uint64_t fastest = 2;
  size_t trials = 0;
  int code = 0;
};

TEST_F(Tuning, theFastestIsUsedByAllRanks) {
  EXPECT_EQ(used({"--init", "--steps", "2"}), only("2")) << err;
  EXPECT_GT(trials, 0u);
  EXPECT_NE(out.find("tuning  1 matmul: algorithms timed on Stub\n"), std::string::npos) << out;
  fastest = 1;
  EXPECT_EQ(used({"--init", "--steps", "2"}), only("1"));
}

TEST_F(Tuning, theFirstIsUsedWhereNothingIsFaster) {
  fastest = 99;
  EXPECT_EQ(used({"--init", "--steps", "2"}), only("0"));
}

/// Algorithm 3 would want more than the cap, and 4 adds by atomics.
TEST_F(Tuning, workspaceAndOrderOfAdditionsComeFirst) {
  for (uint64_t bad : {3, 4}) {
    fastest = bad;
    EXPECT_EQ(used({"--init", "--steps", "2"}), only("0"));
  }
}

TEST_F(Tuning, nothingIsTimedWhereTheFlagSaysSo) {
  EXPECT_EQ(used({"--init", "--steps", "2", "--no-tuning"}), only("0"));
  EXPECT_EQ(trials, 0u);
  EXPECT_NE(out.find("1 matmul: algorithms as cuBLASLt proposes them\n"), std::string::npos) << out;
}

TEST_F(Tuning, aRunThatGoesOnTakesWhatWasKept) {
  std::string save = folder / "ckpt", file = save + "/tuning.json";
  used({"--init", "--steps", "2", "--save", save});
  EXPECT_NE(out.find("algorithms timed on Stub, kept in " + file + "\n"), std::string::npos) << out;
  ASSERT_TRUE(std::filesystem::exists(file));
  fastest = 1;
  EXPECT_EQ(used({"--resume", save, "--steps", "3"}), only("2")) << err;
  EXPECT_EQ(trials, 0u);
  EXPECT_NE(out.find("tuning  1 matmul: algorithms of " + file + "\n"), std::string::npos) << out;
  // Into another folder, from which it goes on likewise.
  std::string next = folder / "next";
  EXPECT_EQ(used({"--resume", save + "/2", "--steps", "3", "--save", next}), only("2")) << err;
  EXPECT_EQ(used({"--resume", "auto", "--steps", "4", "--save", next}), only("2")) << err;
  EXPECT_EQ(trials, 0u);
}

TEST_F(Tuning, whatWasKeptForOthersIsNotUsed) {
  std::string save = folder / "ckpt", file = save + "/tuning.json";
  used({"--init", "--steps", "2", "--save", save});
  replace(file, "\"Stub\"", "\"Other\"");
  fastest = 1;
  EXPECT_EQ(used({"--resume", save, "--steps", "3", "--save", save}), only("1")) << err;
  EXPECT_NE(out.find("tuning  " + file +
                     " is not used: it is for GPU Other instead of Stub; 1 matmul: algorithms "
                     "timed on Stub, kept in " +
                     file + "\n"),
            std::string::npos)
      << out;
  replace(file, "\"13.1.0\"", "\"12.8.4\"");
  used({"--resume", save, "--steps", "3"});
  EXPECT_NE(out.find("it is for cuBLASLt 12.8.4 instead of 13.1.0; "), std::string::npos) << out;
}

TEST_F(Tuning, aBrokenFileIsAnError) {
  std::string save = folder / "ckpt", file = save + "/tuning.json";
  used({"--init", "--steps", "2", "--save", save});
  auto says = [&](const std::string &what) {
    used({"--resume", save, "--steps", "3"});
    EXPECT_EQ(code, 1);
    expectSays(file + ": error: " + what);
  };
  // Algorithm 9 is none, and 3 takes a workspace.
  replace(file, "0000000000000002", "0000000000000009");
  says("matmul f32f32nn");
  expectSays("cuBLASLt 13.1.0 refuses its algorithm (status 15); without this file one is chosen again");
  replace(file, "0000000000000009", "0000000000000003");
  says("matmul f32f32nn");
  replace(file, "0000000000000003", "000000000000000g");
  says("is not a file of chosen algorithms: products.f32f32nn");
  expectSays(".algorithm: not 128 hexadecimal digits, or several times as many; without it they are chosen again");
  replace(file, "\"products\"", "\"product\"");
  says("is not a file of chosen algorithms: no key \"products\"");
  replace(file, "\"par_tuning\": 2", "\"par_tuning\": 3");
  says("is not a file of chosen algorithms: par_tuning: not version 1 or 2");
  std::ofstream(file) << "{\"par_tuning\": ";
  says("is not a file of chosen algorithms: byte 16 is not JSON's");
}

} // namespace
