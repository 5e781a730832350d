// Whether a file is the one that it was, without reading it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace par::core {

/// Which file a name leads to, and in which state: a write, or another file in its place, makes another one of it. The
/// time of change is the kernel's own: no program sets it back, as it may the time of modification. (Two things escape
/// it: a program that keeps writing through a shared mapping, and a clock that is set back.)
struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified = 0, changed = 0; ///< nanoseconds since 1970

  /// "64768 1835 102340147 1796000000000000000 1796000000000000000"
  std::string text() const;
};

/// None where there is no plain file of this name.
std::optional<FileIdentity> identityOf(const std::string &path);

/// Whether a write after `now` (nanoseconds since 1970) gives the file other times: clocks of files may stand still for
/// some milliseconds, those of some file systems for two seconds.
bool isSettled(const FileIdentity &file, int64_t now);

} // namespace par::core
