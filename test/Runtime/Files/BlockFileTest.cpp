// Blocks come back as they were written, or not at all.
#include "par/files/BlockFile.h"
#include "par/files/FileIdentity.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace par::core;
namespace fs = std::filesystem;

namespace {

class BlockFiles : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "par-blocks-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    path = (folder / "a.start").string();
  }
  void TearDown() override { fs::remove_all(folder); }

  static std::string read(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string &path, const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), S_IRUSR | S_IWUSR);
  }
  void writeTwo() { writeBlocks(path, "facts", {{"one", bytesOf(one)}, {"none", {}}, {"two", bytesOf(two)}}); }
  static std::span<const std::byte> bytesOf(const std::string &text) { return std::as_bytes(std::span(text)); }
  static bool isText(std::span<const std::byte> bytes, const std::string &text) {
    return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()) == text;
  }

  fs::path folder;
  std::string path, one = std::string(10'000, 'x') + "end", two = "\"\\ a name";
};

TEST_F(BlockFiles, comeBackAtPages) {
  writeTwo();
  auto file = BlockFile::open(path, "facts");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->blocks().size(), 3u);
  EXPECT_TRUE(isText(file->blocks().at("one"), one));
  EXPECT_TRUE(isText(file->blocks().at("two"), two));
  EXPECT_TRUE(file->blocks().at("none").empty());
  for (const auto &[name, bytes] : file->blocks())
    EXPECT_EQ(file->offsetOf(bytes) % static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), 0u) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1) << "nothing is left beside it";
}

// Names of any length with characters that JSON escapes, and facts that are no UTF-8, as paths may be.
TEST_F(BlockFiles, holdAnyNames) {
  std::string facts(5000, char(200));
  std::vector<Block> blocks;
  for (int i = 0; i < 300; ++i)
    blocks.push_back({std::string(60, '"') + std::to_string(i), bytesOf(one)});
  writeBlocks(path, facts, blocks);
  auto file = BlockFile::open(path, facts);
  ASSERT_TRUE(file);
  for (const Block &block : blocks)
    EXPECT_TRUE(isText(file->blocks().at(block.name), one));
}

TEST_F(BlockFiles, countAsMissingWithOtherFactsOrWriters) {
  EXPECT_FALSE(BlockFile::open(path, "facts"));
  writeTwo();
  EXPECT_FALSE(BlockFile::open(path, "other facts"));
  chmod(path.c_str(), 0620);
  EXPECT_FALSE(BlockFile::open(path, "facts"));
  chmod(path.c_str(), 0600);
  EXPECT_TRUE(BlockFile::open(path, "facts"));
  std::string link = (folder / "link").string();
  fs::create_symlink(path, link);
  EXPECT_FALSE(BlockFile::open(link, "facts"));
  EXPECT_FALSE(BlockFile::open(folder.string(), "facts"));
}

// A change of any byte that counts is found; bytes between blocks do not count.
TEST_F(BlockFiles, countAsMissingWhenDamaged) {
  writeTwo();
  const std::string whole = read(path);
  std::mt19937_64 random(11);
  size_t found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string broken = whole;
    broken[random() % broken.size()] ^= static_cast<char>(1 << random() % 8);
    write(path, broken);
    if (auto file = BlockFile::open(path, "facts")) {
      EXPECT_TRUE(isText(file->blocks().at("one"), one) && isText(file->blocks().at("two"), two)) << round;
      continue;
    }
    ++found;
  }
  EXPECT_GT(found, 2000 * one.size() / whole.size() / 2) << "of 2000";
  for (size_t size : {size_t(0), size_t(5), size_t(21), size_t(60), whole.size() / 2, whole.size() - 4096}) {
    write(path, whole.substr(0, size));
    EXPECT_FALSE(BlockFile::open(path, "facts")) << size;
  }
}

// A length that no file has does not make it read beyond the end.
TEST_F(BlockFiles, countAsMissingWithHugeLengths) {
  writeTwo();
  std::string broken = read(path);
  for (int i = 0; i < 8; ++i)
    broken[13 + static_cast<size_t>(i)] = '\xff';
  write(path, broken);
  EXPECT_FALSE(BlockFile::open(path, "facts"));
}

TEST_F(BlockFiles, identitiesTellFilesApart) {
  std::string file = (folder / "w").string();
  EXPECT_FALSE(identityOf(file));
  EXPECT_FALSE(identityOf(folder.string()));
  write(file, "abc");
  FileIdentity before = *identityOf(file);
  usleep(30'000); // clocks of files tick every 4 or 10 ms
  write(file, "abd");
  timespec times[2] = {{before.modified / 1'000'000'000, before.modified % 1'000'000'000},
                       {before.modified / 1'000'000'000, before.modified % 1'000'000'000}};
  ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  FileIdentity after = *identityOf(file);
  EXPECT_EQ(before.modified, after.modified);
  EXPECT_EQ(before.size, after.size);
  EXPECT_NE(before.text(), after.text());
  EXPECT_FALSE(isSettled(after, after.changed + 1'900'000'000));
  EXPECT_TRUE(isSettled(after, after.changed + 2'100'000'000));
  EXPECT_FALSE(isSettled(after, after.changed - 1'000'000'000)) << "of a clock that was set back";
}

} // namespace
