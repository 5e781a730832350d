// Which bytes of a data file its hash is of.
#include "par/format/DataFile.h"
#include "par/format/Sha256.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace par::format;

namespace {
std::string hashOf(const std::string &content, const DataSample &sample) {
  std::string path = std::filesystem::temp_directory_path() / ("par-data-" + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << content;
  auto file = PlainFile::open(path);
  auto hash = hashDataFile(*file, sample);
  std::filesystem::remove(path);
  return hash ? *hash : hash.message();
}
} // namespace

// A file as long as the limit is hashed whole, also where its last piece is short.
TEST(DataFile, WholeUpToTheLimit) {
  DataSample sample{12, 3, 2};
  for (const char *content : {"", "a", "abc", "0123456789ab"})
    EXPECT_EQ(hashOf(content, sample), sha256(content));
}

// Pieces of a longer file: one at its begin, one at its end, the others evenly between them.
TEST(DataFile, PiecesBeyondTheLimit) {
  DataSample sample{12, 4, 2};
  EXPECT_EQ(hashOf("ab--cd--ef---gh", sample), sha256("abcdefgh")) << "steps are rounded down";
  EXPECT_EQ(hashOf("ab---cd---ef---gh", sample), sha256("abcdefgh"));
  EXPECT_EQ(hashOf("ab-x-cd---ef---gh", sample), hashOf("ab---cd---ef---gh", sample)) << "between pieces";
  EXPECT_NE(hashOf("ab---cd---ef---gH", sample), hashOf("ab---cd---ef---gh", sample));
}

// The rule of bundles: a file of 1 GiB is read whole, and of 100 GiB no more than that.
TEST(DataFile, RuleOfBundles) {
  DataSample rule;
  EXPECT_EQ(rule.whole, uint64_t(1) << 30);
  EXPECT_EQ(rule.pieces * rule.pieceBytes, rule.whole);
}
