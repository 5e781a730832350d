// par-run --calibrate: a hardware file of this machine, by the instructions of a bundle.
#include "ToolFixture.h"

#include "ToyBundles.h"

#include <filesystem>
#include <regex>
#include <sys/stat.h>
#include <thread>

using namespace par;

namespace {

class Calibrate : public Tool {
protected:
  void expectRow(const std::string &text, const std::string &pattern) {
    EXPECT_TRUE(std::regex_search(text, std::regex(pattern))) << pattern << " is not in\n" << text;
  }
};

TEST_F(Calibrate, writesWhatAPipelineTakes) {
  std::string bundle = write(toy::pipeline(2), "pipeline"), file = folder / "mine.yaml";
  ASSERT_EQ(run({bundle, "-n", "4", "--comm", "inproc", "--calibrate=" + file}), 0) << err;
  EXPECT_NE(out.find("calibrate: wrote " + file), std::string::npos) << out;
  std::string text = fileText(file);
  for (const char *pattern :
       {"# Machine: .* 4 ranks of 1 threads on 1 host; oneDNN .*\n", "\nname: mine\n",
        "\n  f32: [1-9]\\d+ +# measured\n", "\nmemory: [1-9]\\d+ ", "\nlink: [1-9]\\d* ", "\nlatency: [1-9]\\d* ",
        "\nlaunch: [1-9]\\d* ", "\n  matmuls: # .*\n(    - .*\n)*    - \\[f32, nn, 1, 2, 4, 4, [1-9]\\d*\\]\n",
        "\n    - \\[f32, nn, 1, 512, 512, 512, [1-9]\\d+\\]\n", "\n    - \\[all_reduce, 64, 2, 1, [1-9]\\d*\\]\n",
        "\n  sends: # .*\n    - \\[32, 1, [1-9]\\d*\\]\n", "\n    - \\[device, 8388608, [1-9]\\d+\\]\n",
        "\n    - \\[matmul, 2, [1-9]\\d+\\]\n"})
    expectRow(text, pattern);
}

TEST_F(Calibrate, writesOverNoFile) {
  std::string bundle = write(toy::training()), file = folder / "mine.yaml";
  std::ofstream(file) << "mine";
  EXPECT_EQ(run({bundle, "--calibrate=" + file}), core::exitError);
  EXPECT_EQ(err, file + ": error: is there already, and --calibrate writes over no file; name another: "
                        "--calibrate=FILE.yaml\n");
  EXPECT_EQ(fileText(file), "mine");
}

TEST_F(Calibrate, liesBesideTheBundleByDefault) {
  std::string bundle = write(toy::training());
  ASSERT_EQ(run({bundle + "/", "--calibrate", "-q"}), 0) << err;
  EXPECT_EQ(out, "");
  std::string text = fileText(bundle + ".hardware.yaml");
  EXPECT_NE(text.find("\nname: toy.par.hardware\n"), std::string::npos) << text;
}

// On two cores a bundle of one rank is measured beside itself, so that its file serves plans of several ranks.
TEST_F(Calibrate, measuresOneRankBesideItself) {
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "one core";
  std::string bundle = write(toy::training()), file = folder / "mine.yaml";
  ASSERT_EQ(run({bundle, "-n", "1", "--calibrate=" + file}), 0) << err;
  std::string text = fileText(file);
  for (const char *pattern :
       {"\n    - \\[all_reduce, 1048576, 2, 1, [1-9]\\d*\\]\n", "\n    - \\[all_gather, 524288, 2, 1, [1-9]\\d*\\]\n",
        "\n  sends: # .*\n    - \\[1024, 1, [1-9]\\d*\\]\n", "\n  wakeups: # .*\n(    - \\[\\d+, [1-9]\\d*\\]\n){5}",
        "\n  spread: # .*\n    - \\[[1-9]\\d*, [1-9]\\d*\\]\n", "\n    - \\[kernel, 2, [1-9]\\d+\\]\n"})
    expectRow(text, pattern);
}

TEST_F(Calibrate, refusesWhatItWouldNotDo) {
  std::string bundle = write(toy::training());
  struct {
    std::vector<std::string> flags;
    std::string says;
  } cases[] = {
      {{"--calibrate", "--steps", "3"}, "par-run: error: --calibrate and --steps exclude each other\n"},
      {{"--resume", "ckpt", "--calibrate"}, "par-run: error: --calibrate and --resume exclude each other\n"},
      {{"--calibrate", "--output", "y.safetensors"}, "par-run: error: --calibrate and --output exclude each other\n"},
      {{"--calibrate", "--init"}, "par-run: error: --calibrate and --init exclude each other\n"},
      {{"--calibrate", "--device", "sim"}, "par-run: error: --calibrate and --device sim exclude each other\n"},
      {{"--calibrate=mine.txt"}, "par-run: error: --calibrate takes a file that ends in .yaml, not \"mine.txt\"\n"},
  };
  for (auto &[flags, says] : cases) {
    flags.insert(flags.begin(), bundle);
    EXPECT_EQ(run(flags), core::exitUsage) << says;
    EXPECT_EQ(err, says);
  }
  EXPECT_EQ(run({bundle, "--calibrate=" + (folder / "nowhere/mine.yaml")}), core::exitError);
  EXPECT_EQ(err, folder / "nowhere/mine.yaml: error: cannot write: No such file or directory\n");
  EXPECT_EQ(run({folder / "no.par", "--calibrate"}), core::exitError);
  EXPECT_NE(err.find("no such bundle"), std::string::npos) << err;
}

} // namespace
