// Writing a bundle over an old one: files that are not the old bundle's stay, and the old bundle stays if the new one
// cannot be written.
#include "TemporaryFolder.h"
#include "ToyBundles.h"
#include "par/format/Bundle.h"
#include "par/format/Process.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace par;
using namespace par::format;

namespace fs = std::filesystem;

namespace {

/// A bundle in `m.par` of a folder of its own.
class ReplaceBundle : public testing::Test {
protected:
  void SetUp() override { ASSERT_EQ(write(), ""); }

  /// The error of writing `m.par`, without the folder's name; empty: it is written.
  std::string write(const std::string &name = "m.par") {
    Expected<Manifest> written = writeBundle(path(name), bundle);
    std::string message = written ? "" : written.message();
    return message.starts_with(path("")) ? message.substr(path("").size()) : message;
  }
  std::string path(const std::string &name) const { return folder / name; }
  void put(const std::string &name, const std::string &text) const { std::ofstream(path(name)) << text; }
  std::string textOf(const std::string &name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  /// Number of files next to `m.par`.
  size_t beside() const {
    return size_t(std::distance(fs::directory_iterator(path("")), fs::directory_iterator())) - 1;
  }

  TemporaryFolder folder;
  Bundle bundle = [] {
    Bundle made = toy::pipeline();
    made.blobs = {{"plan.yaml", "batch: 8\n"}};
    return made;
  }();
};

// A save, an export and a note in the folder stay, and the bundle too.
TEST_F(ReplaceBundle, WhatIsNotOfTheBundleStays) {
  fs::create_directories(path("m.par/3"));
  put("m.par/3/index.json", "a save");
  put("m.par/notes.txt", "precious");
  bundle.blobs[0].bytes = "batch: 16\n";
  EXPECT_EQ(write(),
            "m.par: is not replaced, since it holds what is not of the bundle: 3, notes.txt; move that away, or write "
            "to another folder");
  EXPECT_EQ(textOf("m.par/3/index.json") + textOf("m.par/notes.txt"), "a saveprecious");
  EXPECT_TRUE(readBundle(path("m.par")));
  EXPECT_EQ(beside(), 0u);
  for (int i = 0; i < 9; ++i)
    put("m.par/n" + std::to_string(i), "");
  EXPECT_NE(write().find(": 3, n0, n1, n2, n3, n4, n5, n6 and 3 more; "), std::string::npos);
}

// So does a file of the bundle that its user has changed; a missing one is no loss.
TEST_F(ReplaceBundle, WhatWasChangedStays) {
  put("m.par/plan.yaml", "batch: 8 # mine\n");
  EXPECT_NE(write().find("what is not of the bundle: plan.yaml (changed); move"), std::string::npos);
  EXPECT_EQ(textOf("m.par/plan.yaml"), "batch: 8 # mine\n");
  fs::remove(path("m.par/plan.yaml"));
  fs::remove(path("m.par/role-0.json"));
  EXPECT_EQ(write(), "");
  EXPECT_TRUE(readBundle(path("m.par")));
}

// If the manifest is not a bundle's, or broken, no file of the folder is known to be the bundle's.
TEST_F(ReplaceBundle, AnotherManifestIsNoBundles) {
  std::string whole = textOf("m.par/manifest.json"),
              refusal = "m.par: is not replaced: its manifest.json does not tell which "
                        "files are a bundle's; remove the folder, or write to another one";
  for (std::string text :
       {R"({"name": "an extension", "version": 3})", R"({"par_manifest": [1, 8]})", "[]", "", "{\"par_man"}) {
    put("m.par/manifest.json", text);
    EXPECT_EQ(write(), refusal) << text;
    EXPECT_EQ(textOf("m.par/manifest.json"), text);
  }
  put("m.par/manifest.json", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(write(), refusal);
  // A manifest of another version lists its files all the same.
  put("m.par/manifest.json", R"({"later": 1, "par_manifest": [9, 0])" + whole.substr(whole.find(',', whole.find(']'))));
  EXPECT_EQ(write(), "");
}

// A manifest that lists files of other folders has none of them removed.
TEST_F(ReplaceBundle, ListedElsewhere) {
  put("notes.txt", "precious");
  std::string whole = textOf("m.par/manifest.json"), name = R"("name":"plan.yaml")";
  ASSERT_NE(whole.find(name), std::string::npos);
  put("m.par/manifest.json", whole.replace(whole.find(name), name.size(), R"("name":"../notes.txt")"));
  fs::remove(path("m.par/plan.yaml"));
  EXPECT_EQ(write(), "");
  EXPECT_EQ(textOf("notes.txt"), "precious");
}

// A link is followed, an empty folder is taken, a file and another folder are not, and no folder beside is touched.
TEST_F(ReplaceBundle, WhatStandsInItsPlace) {
  fs::create_directory_symlink("m.par", path("link.par"));
  EXPECT_EQ(write("link.par/"), "");
  EXPECT_TRUE(fs::is_symlink(path("link.par")) && fs::is_directory(fs::symlink_status(path("m.par"))));
  fs::create_directory_symlink("gone", path("dangling.par"));
  EXPECT_EQ(write("dangling.par"),
            "dangling.par: is a link that leads to nothing; remove it, or write to another folder");
  fs::create_directory(path("empty"));
  EXPECT_EQ(write("empty"), "");
  put("file", "mine");
  EXPECT_EQ(write("file"), "file: exists and is not a bundle, so it is not replaced");
  fs::create_directories(path("mine/x"));
  EXPECT_EQ(write("mine"), "mine: exists and is not a bundle, so it is not replaced");
  std::string taken = "m.par.tmp-" + std::to_string(getpid()) + "-0";
  fs::create_directory(path(taken));
  put(taken + "/notes.txt", "precious");
  EXPECT_EQ(write(), "");
  EXPECT_EQ(textOf(taken + "/notes.txt"), "precious");
}

// A bundle that no reader accepts is not written, and the old bundle stays.
TEST_F(ReplaceBundle, IsReadBack) {
  std::string before = textOf("m.par/role-0.json");
  bundle.programs[0].buffers[0].name = std::string(257, 'x');
  EXPECT_EQ(write(),
            "m.par: is not written, since it cannot be read back: role-0.json: buffers[0].name: a name has 1 to 256 "
            "characters, this one 257");
  EXPECT_EQ(textOf("m.par/role-0.json"), before);
  EXPECT_EQ(beside(), 0u);
}

// A limit of files' sizes is an error that names the file, and the old bundle stays.
TEST_F(ReplaceBundle, FilesThatMayNotGrow) {
  ASSERT_TRUE(prepareProcess());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string said = write();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(said, "m.par.tmp-" + std::to_string(getpid()) + "-0/role-0.json: cannot write: File too large");
  EXPECT_TRUE(readBundle(path("m.par")));
  EXPECT_EQ(beside(), 0u);
}

} // namespace
