// The one way to open a file that a user names.
#include "par/format/PlainFile.h"

#include "par/format/Printable.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace par::format;

static Error reason() { return Error{std::strerror(errno)}; }

static std::string shrunk(uint64_t size) {
  return "became shorter while it was read: it had " + std::to_string(size) + " bytes";
}

/// Word for a thing in a file's place.
static const char *kindOf(mode_t mode) {
  if (S_ISDIR(mode))
    return "a folder, not a plain file";
  if (S_ISFIFO(mode))
    return "a pipe, not a plain file";
  if (S_ISSOCK(mode))
    return "a socket, not a plain file";
  return "a device, not a plain file";
}

Expected<PlainFile> PlainFile::open(const std::string &path) {
  if (path.find('\0') != std::string::npos)
    return Error{"a name with a zero byte"};
  // Looked at before it is opened: opening a device can do something to it.
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return reason();
  if (!S_ISREG(info.st_mode))
    return Error{kindOf(info.st_mode)};
  int fd;
  do
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (fd < 0 && errno == EINTR);
  if (fd < 0)
    return reason();
  // And again: another may have taken its place in between.
  PlainFile file(fd, 0);
  if (::fstat(fd, &info) != 0)
    return reason();
  if (!S_ISREG(info.st_mode))
    return Error{kindOf(info.st_mode)};
  file.bytes = static_cast<uint64_t>(info.st_size);
  return file;
}

PlainFile::~PlainFile() {
  if (fd >= 0)
    ::close(fd);
}

Status PlainFile::read(uint64_t offset, char *to, uint64_t length) const {
  if (offset > bytes || length > bytes - offset)
    return Error{"has " + std::to_string(bytes) + " bytes, wanted " + std::to_string(length) + " at " +
                 std::to_string(offset)};
  for (uint64_t done = 0; done < length;) {
    ssize_t count = ::pread(fd, to + done, length - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return reason();
    if (count == 0)
      return Error{shrunk(bytes)};
    done += static_cast<uint64_t>(count);
  }
  return {};
}

Expected<bool> par::format::isThere(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0)
    return true;
  if (errno == ENOENT || errno == ENOTDIR)
    return false;
  return reason();
}

Expected<std::string> par::format::readPlainFile(const std::string &path, uint64_t limit) {
  Expected<PlainFile> file = PlainFile::open(path);
  if (!file)
    return file.error();
  if (file->size() > limit)
    return Error{std::to_string(file->size()) + " bytes, at most " + std::to_string(limit) + " are read"};
  std::string text(file->size(), '\0');
  if (Status status = file->read(0, text.data(), text.size()); !status)
    return status.error();
  return text;
}

namespace {

/// A mapping that the handler knows; `begin` is 0 where the place is free.
struct Watched {
  std::atomic<uintptr_t> begin{0};
  uintptr_t end = 0;
  std::string sentence;
};

/// Mapped files, for the handler of SIGBUS. A handler belongs to the process, so these are global. Files beyond the
/// array's size are mapped all the same, and not named.
std::array<Watched, 2048> watched;
std::mutex watching;
struct sigaction before;

/// Ends the process where a page of a mapped file is gone; other faults go to the earlier handler.
void onBusError(int signal, siginfo_t *info, void *) {
  auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Watched &file : watched) {
    uintptr_t begin = file.begin.load(std::memory_order_acquire);
    if (info->si_code <= 0 || begin == 0 || at < begin || at >= file.end)
      continue;
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, file.sentence.data(), file.sentence.size());
    ::_exit(1);
  }
  ::sigaction(SIGBUS, &before, nullptr);
  if (info->si_code <= 0)
    ::raise(signal); // a process sent it: it does not come again by itself
}

int watch(const void *data, size_t size, const std::string &path) {
  std::lock_guard lock(watching);
  static bool caught = false;
  if (!caught) {
    struct sigaction action = {};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    caught = ::sigaction(SIGBUS, &action, &before) == 0;
  }
  for (size_t i = 0; i < watched.size(); ++i) {
    if (watched[i].begin.load(std::memory_order_relaxed) != 0)
      continue;
    watched[i].sentence = printable(path) + ": error: " + shrunk(size) + "\n";
    watched[i].end = reinterpret_cast<uintptr_t>(data) + size;
    watched[i].begin.store(reinterpret_cast<uintptr_t>(data), std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void unwatch(int place) {
  std::lock_guard lock(watching);
  watched[static_cast<size_t>(place)].begin.store(0, std::memory_order_release);
}

} // namespace

Expected<MappedPlainFile> MappedPlainFile::open(const std::string &path) {
  Expected<PlainFile> file = PlainFile::open(path);
  return file ? map(*file, path) : file.error();
}

Expected<MappedPlainFile> MappedPlainFile::map(const PlainFile &file, const std::string &path) {
  MappedPlainFile mapped;
  mapped.size = file.size();
  struct stat info;
  if (::fstat(file.descriptor(), &info) != 0)
    return reason();
  mapped.path = path;
  mapped.device = info.st_dev;
  mapped.inode = info.st_ino;
  if (mapped.size == 0)
    return mapped;
  void *data = ::mmap(nullptr, mapped.size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (data == MAP_FAILED)
    return reason();
  mapped.data = static_cast<const char *>(data);
  mapped.watched = watch(data, mapped.size, path);
  return mapped;
}

MappedPlainFile &MappedPlainFile::operator=(MappedPlainFile &&other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  std::swap(watched, other.watched);
  std::swap(path, other.path);
  std::swap(device, other.device);
  std::swap(inode, other.inode);
  return *this;
}

MappedPlainFile::~MappedPlainFile() {
  if (watched >= 0)
    unwatch(watched);
  if (data)
    ::munmap(const_cast<char *>(data), size);
}

void MappedPlainFile::drop() const {
  if (data)
    ::madvise(const_cast<char *>(data), size, MADV_DONTNEED);
}

Status MappedPlainFile::stillWhole() const {
  struct stat info;
  bool same = data && ::stat(path.c_str(), &info) == 0 && info.st_dev == device && info.st_ino == inode;
  if (same && static_cast<uint64_t>(info.st_size) < size)
    return Error{shrunk(size)};
  return {};
}

void par::format::openStandardStreams() {
  // The lowest number that is free is given.
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0)
      return;
}
