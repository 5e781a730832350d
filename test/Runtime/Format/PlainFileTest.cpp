// Files that may be opened, and the errors about others.
#include "par/format/PlainFile.h"
#include "TemporaryFolder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace par::format;

static std::string reasonOf(const std::string &path) {
  Expected<PlainFile> file = PlainFile::open(path);
  return file ? "none" : file.message();
}

// Nothing but a plain file is opened, and nothing is waited for.
TEST(PlainFile, refusesWhatIsNoFile) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(reasonOf(folder / "pipe"), "a pipe, not a plain file");
  EXPECT_EQ(reasonOf("/dev/zero"), "a device, not a plain file");
  EXPECT_EQ(reasonOf(folder / ""), "a folder, not a plain file");
  EXPECT_EQ(reasonOf(folder / "absent"), "No such file or directory");
  EXPECT_EQ(reasonOf(std::string("a\0b", 3)), "a name with a zero byte");
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {AF_UNIX, {}};
  (folder / "s").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
  EXPECT_EQ(reasonOf(folder / "s"), "a socket, not a plain file");
  close(listener);
  std::filesystem::create_symlink("pipe", folder / "link");
  EXPECT_EQ(reasonOf(folder / "link"), "a pipe, not a plain file");
}

TEST(PlainFile, readsAsMuchAsItSaid) {
  TemporaryFolder folder;
  std::string path = folder / "f";
  std::ofstream(path) << "0123456789";
  EXPECT_EQ(*readPlainFile(path), "0123456789");
  EXPECT_EQ(readPlainFile(path, 9).message(), "10 bytes, at most 9 are read");
  Expected<PlainFile> file = PlainFile::open(path);
  ASSERT_TRUE(file);
  char some[4];
  EXPECT_TRUE(file->read(6, some, 4));
  EXPECT_EQ(std::string(some, 4), "6789");
  EXPECT_EQ(file->read(8, some, 4).message(), "has 10 bytes, wanted 4 at 8");
  std::filesystem::resize_file(path, 7);
  EXPECT_EQ(file->read(6, some, 4).message(), "became shorter while it was read: it had 10 bytes");
}

// A mapped file that loses its pages ends the process with its name, not by a signal.
TEST(PlainFileDeathTest, aFileThatShrinksIsNamed) {
  TemporaryFolder folder;
  std::string path = folder / "mapped";
  std::ofstream(path) << std::string(3 << 12, 'x');
  auto shrink = [&] {
    Expected<MappedPlainFile> file = MappedPlainFile::open(path);
    Expected<MappedPlainFile> gone = MappedPlainFile::open(path);
    gone = Error{"closed"};
    truncate(path.c_str(), 100);
    volatile char last = file->bytes()[(3 << 12) - 1];
    _exit(last == 'x' ? 0 : 2);
  };
  EXPECT_EXIT(shrink(), testing::ExitedWithCode(1),
              "mapped: error: became shorter while it was read: it had 12288 bytes");
}

// Bytes lost from a page that stays are read as zeros without a signal: the reader asks. Another file of the same name
// is no shorter file.
TEST(PlainFile, saysThatItBecameShorterWithinAPage) {
  TemporaryFolder folder;
  std::string path = folder / "mapped";
  std::ofstream(path) << std::string(100, 'x');
  Expected<MappedPlainFile> file = MappedPlainFile::open(path);
  ASSERT_TRUE(file);
  std::filesystem::resize_file(path, 200);
  EXPECT_TRUE(file->stillWhole());
  std::filesystem::resize_file(path, 99);
  EXPECT_EQ(file->bytes()[99], 0);
  EXPECT_EQ(file->stillWhole().message(), "became shorter while it was read: it had 100 bytes");
  std::filesystem::remove(path);
  std::ofstream(path) << "x";
  EXPECT_TRUE(file->stillWhole());
}

// Nor is a bus error elsewhere taken for one of a file's.
TEST(PlainFileDeathTest, otherBusErrorsStayWhatTheyAre) {
  TemporaryFolder folder;
  std::ofstream(folder / "mapped") << "x";
  Expected<MappedPlainFile> file = MappedPlainFile::open(folder / "mapped");
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}
