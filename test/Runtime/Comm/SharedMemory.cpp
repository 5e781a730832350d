// Memory that outlives an attempt of a job is zero in the next one.
#include "comm/shared/Memory.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace par::comm;

namespace {

uint64_t blocksOf(const SharedFile &file) {
  struct stat status{};
  fstat(file.descriptor(), &status);
  return uint64_t(status.st_blocks);
}

TEST(SharedMemory, clearZeroesWhatWasWrittenAndTakesNoPageMore) {
  constexpr size_t page = 4096, size = 40 * page + 100;
  SharedFile file = SharedFile::create("test");
  file.resize(size);
  Mapping before = file.map(size);
  for (size_t at : {size_t(3), 4 * page, 5 * page + 17, 20 * page - 1, size - 1})
    before.bytes[at] = std::byte(7);
  uint64_t blocks = blocksOf(file);
  EXPECT_GT(blocks, 0u);
  Mapping after = file.map(size);
  file.clear(after.bytes);
  EXPECT_TRUE(std::all_of(after.bytes.begin(), after.bytes.end(), [](std::byte one) { return one == std::byte(0); }));
  SharedFile fresh = SharedFile::create("test");
  fresh.resize(size);
  Mapping untouched = fresh.map(size);
  fresh.clear(untouched.bytes);
  EXPECT_EQ(blocksOf(fresh), 0u);
}

TEST(SharedMemory, clearLeavesHolesAlone) {
  constexpr size_t size = 1 << 20;
  SharedFile file = SharedFile::create("test");
  file.resize(size);
  Mapping memory = file.map(size);
  memory.bytes[size / 2] = std::byte(1);
  uint64_t blocks = blocksOf(file);
  file.clear(memory.bytes);
  EXPECT_EQ(blocksOf(file), blocks);
  EXPECT_EQ(memory.bytes[size / 2], std::byte(0));
}

} // namespace
