// A job does not write over its inputs: a typing error costs neither data nor weights nor a bundle. Existing files
// under the names of temporary files are kept.
#include "ToolFixture.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

using namespace par;
namespace fs = std::filesystem;

namespace {

class OutputPlaces : public Tool {
protected:
  std::string bundle, text, weights;

  void SetUp() override {
    Tool::SetUp();
    bundle = write(toy::training(2), "two");
    text = folder / "text";
    weights = folder / "w.safetensors";
    ASSERT_EQ(runTwo({"--init", "--steps", "1", "--export", weights, "--save", folder / "saves"}), 0) << err;
  }
  int runTwo(std::vector<std::string> more) {
    more.insert(more.begin(), {bundle, "--comm", "inproc", "-n", "2", "--text", text});
    return run(more);
  }
  /// Refused by this sentence before anything is written.
  void refuses(std::vector<std::string> more, const std::string &path, const std::string &says) {
    std::string before = fs::exists(path) ? fileText(path) : "";
    more.insert(more.begin(), {"--steps", "1"});
    EXPECT_EQ(runTwo(more), 2) << says;
    expectSays(path + ": error: " + says);
    EXPECT_EQ(fs::exists(path) ? fileText(path) : "", before);
  }
};

} // namespace

TEST_F(OutputPlaces, areNotWhatIsRead) {
  fs::create_hard_link(text, folder / "linked");
  fs::create_symlink(weights, folder / "led");
  for (const char *flag : {"--metrics", "--trace"}) {
    refuses({"--init", flag, text}, text,
            std::string(flag) + " would write over what --text reads; give it another file");
    refuses({"--init", flag, bundle + "/manifest.json"}, bundle + "/manifest.json",
            std::string(flag) + " would write over what the bundle reads; give it another file");
    refuses({"--weights", weights, flag, weights}, weights,
            std::string(flag) + " would write over what --weights reads");
  }
  refuses({"--init", "--metrics", folder / "linked"}, folder / "linked",
          "--metrics would write over what --text reads");
  refuses({"--weights", weights, "--trace", (folder / "led") + ":1-2"}, folder / "led",
          "--trace would write over what --weights reads");
  std::string index = folder / "saves/1/index.json";
  refuses({"--resume", folder / "saves/1", "--metrics", index}, index,
          "--metrics would write over what --resume reads");
}

TEST_F(OutputPlaces, areFilesOfTheirOwn) {
  std::string one = folder / "one", save = folder / "saves";
  refuses({"--init", "--metrics", one, "--trace", one + ":1-2"}, one,
          "--metrics and --trace would both write it; give one of them another file");
  refuses({"--init", "--metrics", (folder / ".") + "/one.safetensors", "--export", folder / "one.safetensors"},
          folder / "one.safetensors", "--metrics and --export would both write it");
  refuses({"--init", "--metrics", save + "/4", "--save", save}, save + "/4",
          "--metrics takes a name of --save's own; give it another file");
  EXPECT_EQ(runTwo({"--init", "--steps", "1", "--save", folder / "other", "--metrics", folder / "other/m.jsonl",
                    "--trace", "/dev/null"}),
            0)
      << err;
  EXPECT_TRUE(fs::exists(folder / "other/1/index.json") && fs::exists(folder / "other/m.jsonl"));
}

// A name that one could guess is not used: links there would lead to somebody's file, and two jobs would write into
// one.
TEST_F(OutputPlaces, areMadeUnderNamesOfTheirOwn) {
  std::string out = folder / "e.safetensors", part = out + ".0123456789abcdef.tmp",
              busy = out + ".fedcba9876543210.tmp";
  std::ofstream(folder / "victim") << "victim";
  fs::create_symlink(folder / "victim", out + ".tmp");
  std::ofstream(part) << "left by a job that was killed";
  std::ofstream(busy) << "of a job that runs";
  int other = open(busy.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  ASSERT_EQ(runTwo({"--init", "--steps", "1", "--export", out}), 0) << err;
  EXPECT_EQ(fileText(folder / "victim"), "victim");
  EXPECT_FALSE(fs::is_symlink(out));
  EXPECT_EQ(fileText(out), fileText(weights));
  EXPECT_TRUE(fs::is_symlink(out + ".tmp") && fs::exists(busy) && !fs::exists(part));
  close(other);
}

// The lock of a folder of saves is no other file's second name.
TEST_F(OutputPlaces, lockIsNoLink) {
  std::ofstream(folder / "victim") << "victim";
  fs::create_directory(folder / "shared");
  fs::create_hard_link(folder / "victim", folder / "shared/.lock");
  EXPECT_EQ(runTwo({"--init", "--steps", "1", "--save", folder / "shared"}), 1);
  expectSays("/.lock: error: cannot write: it is a link to another file");
  EXPECT_EQ(fileText(folder / "victim"), "victim");
}
