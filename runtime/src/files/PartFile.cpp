#include "par/files/PartFile.h"

#include "comm/job/Secret.h"
#include "par/messages/Failure.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace par::core {

namespace fs = std::filesystem;

constexpr size_t hexBytes = 8;

PartFile::PartFile(const std::string &whole, comm::Control &control) : whole(whole) {
  if (control.rank() == 0)
    make();
  path = control.broadcast("part of " + whole, path);
}

PartFile::PartFile(const std::string &whole) : whole(whole) { make(); }

PartFile::PartFile(PartFile &&other) noexcept
    : whole(std::move(other.whole)), path(std::move(other.path)), descriptor(std::exchange(other.descriptor, -1)) {}

PartFile::~PartFile() {
  if (descriptor < 0)
    return;
  unlink(path.c_str());
  close(descriptor);
}

/// A lock, or a file system that has none (there nothing of others is removed either); false where another job, which
/// took the file for one that was left, has it or has removed it.
static bool lockNew(int descriptor) {
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    return errno != EWOULDBLOCK;
  struct stat info;
  return fstat(descriptor, &info) == 0 && info.st_nlink > 0;
}

void PartFile::make() {
  removeLeftOver();
  for (;;) {
    path = whole + "." + comm::randomHex(hexBytes) + ".tmp";
    descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0)
      throw Failure::at(path, Message::cannotWrite, std::strerror(errno));
    if (lockNew(descriptor))
      return;
    close(std::exchange(descriptor, -1));
  }
}

/// "out.onnx.0123456789abcdef.tmp" beside "out.onnx".
static bool isPart(const std::string &name, const std::string &of) {
  const std::string ending = ".tmp";
  return name.size() == of.size() + 1 + 2 * hexBytes + ending.size() && name.starts_with(of + ".") &&
         name.ends_with(ending) &&
         name.find_first_not_of("0123456789abcdef", of.size() + 1) == name.size() - ending.size();
}

void PartFile::removeLeftOver() const {
  std::error_code error;
  fs::path file = fs::path(whole), folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!isPart(at->path().filename().string(), file.filename().string()))
      continue;
    int left = open(at->path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (left < 0)
      continue;
    if (flock(left, LOCK_EX | LOCK_NB) == 0)
      unlink(at->path().c_str());
    close(left);
  }
}

void PartFile::giveName() {
  if (descriptor < 0)
    return;
  if (rename(path.c_str(), whole.c_str()) != 0)
    throw Failure::at(whole, Message::cannotWrite, std::strerror(errno));
  close(std::exchange(descriptor, -1));
}

} // namespace par::core
