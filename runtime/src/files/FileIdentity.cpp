#include "par/files/FileIdentity.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <sys/stat.h>

namespace par::core {

std::string FileIdentity::text() const { return format("{} {} {} {} {}", device, inode, size, modified, changed); }

std::optional<FileIdentity> identityOf(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  auto nanoseconds = [](const timespec &time) { return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec; };
  return FileIdentity{info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), nanoseconds(info.st_mtim),
                      nanoseconds(info.st_ctim)};
}

bool isSettled(const FileIdentity &file, int64_t now) {
  constexpr int64_t coarsest = 2'000'000'000;
  return std::max(file.modified, file.changed) < now - coarsest;
}

} // namespace par::core
