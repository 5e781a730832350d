// Bytes that go past the system's cache are those that were given, whatever the file system, places and addresses.
#include "par/files/FileWriter.h"
#include "../../../runtime/test/TemporaryFolder.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace par::core;

namespace {

constexpr size_t block = FileWriter::block;

/// Memory that begins at a block.
struct Blocks {
  explicit Blocks(size_t count)
      : memory(static_cast<std::byte *>(std::aligned_alloc(block, count * block)), std::free),
        bytes(memory.get(), count * block) {}
  std::unique_ptr<std::byte, void (*)(void *)> memory;
  std::span<std::byte> bytes;
};

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void fillRandomly(std::span<std::byte> bytes, std::mt19937 &random) {
  for (std::byte &byte : bytes)
    byte = static_cast<std::byte>(random());
}

/// Pages of a file that are in the system's cache.
size_t cachedPages(const std::string &path, size_t bytes) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void *mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  std::vector<unsigned char> there((bytes + block - 1) / block);
  EXPECT_EQ(mincore(mapped, bytes, there.data()), 0) << std::strerror(errno);
  munmap(mapped, bytes);
  close(file);
  return static_cast<size_t>(std::count_if(there.begin(), there.end(), [](unsigned char one) { return one & 1; }));
}

/// Whether a folder is on a disk of which it is known that it can be written past the cache.
bool onDisk(const std::string &folder) {
  struct statfs facts{};
  constexpr unsigned long ext4 = 0xEF53, xfs = 0x58465342;
  return sysconf(_SC_PAGESIZE) == long(block) && statfs(folder.c_str(), &facts) == 0 &&
         (static_cast<unsigned long>(facts.f_type) == ext4 || static_cast<unsigned long>(facts.f_type) == xfs);
}

/// Pieces at random places, lengths and addresses, many of them whole blocks.
void writePieces(const std::string &path, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + " " + path);
  std::mt19937 random(seed);
  Blocks memory(64);
  std::string expected;
  {
    FileWriter writer(path, true);
    for (int i = 0; i < 40; ++i) {
      fillRandomly(memory.bytes, random);
      size_t bytes = random() % 3 ? random() % 32 * block : random() % (32 * block);
      size_t address = random() % 4 ? random() % 32 * block : random() % (32 * block);
      size_t at = random() % 4 ? random() % 64 * block : random() % (64 * block);
      std::span<const std::byte> piece = memory.bytes.subspan(address, bytes);
      random() % 4 ? writer.writeDirect(at, piece) : writer.write(at, piece);
      if (bytes && expected.size() < at + bytes)
        expected.resize(at + bytes);
      std::memcpy(expected.data() + at, piece.data(), bytes);
    }
    writer.sync();
  }
  EXPECT_TRUE(contentOf(path) == expected);
}

TEST(FileWriter, writesWhatIsGiven) {
  std::random_device seed;
  TemporaryFolder folder;
  for (int i = 0; i < 5; ++i)
    writePieces(folder / "direct", seed());
  std::string inMemory = "/dev/shm/par-file-writer-" + std::to_string(getpid());
  if (access("/dev/shm", W_OK) == 0)
    writePieces(inMemory, seed());
  unlink(inMemory.c_str());
}

TEST(FileWriter, leavesNothingInTheCache) {
  TemporaryFolder folder;
  if (!onDisk(folder / ""))
    GTEST_SKIP() << "needs a folder on ext4 or xfs";
  Blocks memory(1024);
  std::memset(memory.bytes.data(), 1, memory.bytes.size());
  FileWriter direct(folder / "direct", true), other(folder / "other", true);
  direct.writeDirect(0, memory.bytes);
  direct.sync();
  EXPECT_TRUE(direct.isDirect());
  EXPECT_EQ(cachedPages(folder / "direct", memory.bytes.size()), 0u);
  other.write(0, memory.bytes);
  EXPECT_EQ(cachedPages(folder / "other", memory.bytes.size()), 1024u);
}

/// In a process of its own, for the limit is the process's.
TEST(FileWriter, fallsBackAndNamesTheFault) {
  TemporaryFolder folder;
  std::string path = folder / "limited";
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    // No whole number of blocks: what still fits cannot go past the cache.
    rlimit limit{3 * block + 100, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    Blocks memory(8);
    std::memset(memory.bytes.data(), 7, memory.bytes.size());
    FileWriter writer(path, true);
    try {
      writer.writeDirect(0, memory.bytes);
      _exit(1);
    } catch (const Failure &failure) {
      if (failure.what() != path + ": error: cannot write: File too large" || writer.isDirect())
        _exit(2);
    }
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    writer.writeDirect(0, memory.bytes); // as write()
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << contentOf(path).size();
  EXPECT_TRUE(contentOf(path) == std::string(8 * block, 7));
}

} // namespace
