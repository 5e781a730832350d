#include "par/files/FileWriter.h"

#include "NoSpace.h"
#include "par/comm/shared/Output.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace par::core {

FileWriter::FileWriter(const std::string &path, bool create) : path(path) {
  // The file is renamed later: a link of this name is not Par's.
  descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_TRUNC : 0), 0644);
  if (descriptor < 0)
    failToWrite(path, errno);
}

FileWriter::~FileWriter() { close(descriptor); }

void FileWriter::write(uint64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      failToWrite(path, errno);
    at += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

/// Returns the number of bytes that were written. After a fault write() tries the rest, and says why it fails.
size_t FileWriter::tryDirect(uint64_t at, std::span<const std::byte> bytes) {
  int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_DIRECT) != 0) {
    direct = false; // as on file systems without disks
    return 0;
  }
  size_t done = 0;
  while (done < bytes.size() && direct) {
    ssize_t written = pwrite(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (written < 0 && errno == EINTR)
      continue;
    // A disk may have longer blocks, and the last bytes that fit on it are no whole block.
    direct = written > 0 && static_cast<size_t>(written) % block == 0;
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  fcntl(descriptor, F_SETFL, flags);
  return done;
}

void FileWriter::writeDirect(uint64_t at, std::span<const std::byte> bytes) {
  bool fits = at % block == 0 && reinterpret_cast<uintptr_t>(bytes.data()) % block == 0;
  if (size_t whole = bytes.size() / block * block; direct && fits && whole > 0) {
    size_t done = tryDirect(at, bytes.first(whole));
    at += done;
    bytes = bytes.subspan(done);
  }
  write(at, bytes);
}

void FileWriter::resize(uint64_t bytes) {
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
    failToWrite(path, errno);
}

void FileWriter::startSync(uint64_t at, uint64_t bytes) {
  // An offer: where the file system cannot, sync() does all of it.
  (void)sync_file_range(descriptor, static_cast<off_t>(at), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void FileWriter::sync() {
  if (fsync(descriptor) != 0)
    failToWrite(path, errno);
}

StreamWriter::StreamWriter(const std::string &path, bool append) : path(path) {
  int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC);
  descriptor = open(path.c_str(), flags | O_NONBLOCK, 0644);
  if (descriptor < 0)
    throw Failure::at(path, Message::cannotWrite, std::strerror(errno));
  fcntl(descriptor, F_SETFL, append ? O_APPEND : 0); // a reader that is slow is waited for
}

StreamWriter::~StreamWriter() {
  if (descriptor >= 0)
    close(descriptor);
}

void StreamWriter::write(std::string_view text) {
  if (descriptor < 0 || comm::writeOutput(descriptor, text))
    return;
  if (errno != ETIMEDOUT)
    throw Failure::at(path, Message::cannotWrite, std::strerror(errno));
  // The job was asked to end: it does that, and saves, without these lines.
  close(descriptor);
  descriptor = -1;
  std::string why = format(textOf(Message::cannotWrite), "it has no reader; its last lines are missing");
  comm::writeOutput(STDERR_FILENO, par::format::printable(path) + ": warning: " + why + "\n");
}

} // namespace par::core
