// The file of a family, and members in a bundle's folder: written and replaced as one.
#include "par/format/Family.h"
#include "TemporaryFolder.h"
#include "ToyBundles.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace par;
using namespace par::format;

namespace fs = std::filesystem;

namespace {

const Family two = makeFamily({{"main", {}, 2, "aa"}, {"dp1", {"mesh.dp=1"}, 1, "bb"}});

std::string refusal(std::string text, const std::string &from, const std::string &to) {
  text.replace(text.find(from), from.size(), to);
  Expected<Family> read = parseFamily(text, "family.json");
  return read ? "" : read.message();
}

TEST(Family, IsReadAsWritten) {
  Expected<Family> read = parseFamily(writeFamilyText(two), "family.json");
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(read->members, two.members);
  EXPECT_EQ(read->hash, two.hash);
  EXPECT_EQ(read->withRanks(1)->name, "dp1");
  EXPECT_EQ(read->withRanks(3), nullptr);
  EXPECT_NE(makeFamily({{"main", {}, 2, "aa"}, {"dp1", {}, 1, "bc"}}).hash, two.hash);
}

TEST(Family, Refusals) {
  std::string text = writeFamilyText(two);
  EXPECT_EQ(refusal(text, "\"dp1\"", "\"../x\""), "family.json: members[1].name: '../x' is no name of a folder");
  EXPECT_EQ(refusal(text, "\"main\"", "\"first\""),
            "family.json: members[0]: the first member is 'main', and only that one");
  EXPECT_EQ(refusal(text, "\"ranks\":1", "\"ranks\":2"),
            "family.json: members[1]: two members have the name 'dp1' or 2 ranks");
  EXPECT_EQ(refusal(text, "\"bb\"", "\"bc\"").find("family.json: family: is not the hash of its members, "), 0u);
  EXPECT_EQ(refusal(text, "[1,", "[2,").find("family.json: par_family: version 2."), 0u);
}

/// A family in `m.par` of a folder of its own.
class FamilyFolder : public testing::Test {
protected:
  std::string write() {
    Expected<Manifest> written = writeFamily(folder / "m.par", main, {{"dp1", &member}});
    return written ? "" : written.message();
  }
  static Bundle with(Bundle made, const std::string &plan) {
    made.manifest.planHash = plan;
    made.blobs = {{"family.json", writeFamilyText(two)}, {"same.txt", "the same in both"}};
    return made;
  }
  TemporaryFolder folder;
  Bundle main = with(toy::pipeline(), "aa"), member = with(toy::stack({}), "bb");
};

TEST_F(FamilyFolder, IsWrittenAndReplacedAsOne) {
  ASSERT_EQ(write(), "");
  std::string at = folder / "m.par";
  EXPECT_TRUE(readBundle(at));
  EXPECT_TRUE(readBundle(at + "/also/dp1"));
  EXPECT_TRUE(fs::equivalent(at + "/same.txt", at + "/also/dp1/same.txt"));
  Expected<std::vector<FamilyMember>> members = membersIn(at), none = membersIn(at + "/also/dp1");
  ASSERT_TRUE(members && none);
  EXPECT_EQ(*members, std::vector<FamilyMember>{two.members[1]});
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(mainFolderOf(at + "/also/dp1/"), at);
  EXPECT_EQ(mainFolderOf(at + "/"), at);
  EXPECT_EQ(mainFolderOf(folder / "also/dp1"), folder / "also/dp1");
  EXPECT_EQ(write(), "");
  EXPECT_TRUE(writeBundle(at, main));
  EXPECT_FALSE(fs::exists(at + "/also"));
}

TEST_F(FamilyFolder, KeepsWhatIsNotOfIt) {
  ASSERT_EQ(write(), "");
  std::string at = folder / "m.par";
  std::ofstream(at + "/also/dp1/notes.txt") << "precious";
  EXPECT_NE(write().find("m.par/also/dp1: is not replaced, since it holds what is not of the bundle: notes.txt"),
            std::string::npos);
  fs::remove(at + "/also/dp1/notes.txt");
  fs::create_directories(at + "/also/12");
  EXPECT_NE(write().find("since it holds what is not of the bundle: also/12; move that away"), std::string::npos);
  fs::remove(at + "/also/12");
  fs::create_symlink("/", at + "/also/dp2");
  EXPECT_NE(write().find("since it holds what is not of the bundle: also/dp2; move that away"), std::string::npos);
  fs::remove(at + "/also/dp2");
  EXPECT_EQ(write(), "");
}

} // namespace
