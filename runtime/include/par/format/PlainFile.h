// The one way to open a file that a user names. Compiler and runtime open every file from outside (models and their
// data, plans, bundles, weights, samples, saves, tuning) by these functions: a pipe, a device, a socket or a folder in
// a file's place is refused with a sentence and never waited for, the size is known before the first byte is used, and
// a file that becomes shorter while it is read is named. Errors are reasons without the path: the caller adds the place
// in its own form.
#pragma once

#include "par/format/Error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace par::format {

/// A plain file open for reading; move-only.
class PlainFile {
public:
  /// "No such file or directory", "a pipe, not a plain file", ...
  static Expected<PlainFile> open(const std::string &path);
  PlainFile(PlainFile &&other) noexcept : fd(std::exchange(other.fd, -1)), bytes(other.bytes) {}
  PlainFile(const PlainFile &) = delete;
  ~PlainFile();

  /// When it was opened.
  uint64_t size() const { return bytes; }
  /// All of [offset, offset + length), or why not.
  Status read(uint64_t offset, char *to, uint64_t length) const;
  int descriptor() const { return fd; }

private:
  PlainFile(int fd, uint64_t bytes) : fd(fd), bytes(bytes) {}
  int fd;
  uint64_t bytes;
};

/// Whether something has this name; the error is the reason why that cannot be seen, as of a folder that is
/// closed to this user.
Expected<bool> isThere(const std::string &path);

/// Texts that are read as a whole are no longer than this.
inline constexpr uint64_t maxText = uint64_t(256) << 20;

/// The content of a file of at most `limit` bytes.
Expected<std::string> readPlainFile(const std::string &path, uint64_t limit = maxText);

/// A plain file mapped for reading; move-only. If it becomes shorter meanwhile, an access to a missing page ends the
/// process with a sentence that names the file (SIGBUS is caught for that); stillWhole() finds other changes of size.
class MappedPlainFile {
public:
  MappedPlainFile() = default;
  static Expected<MappedPlainFile> open(const std::string &path);
  /// The open file; `path` is its name.
  static Expected<MappedPlainFile> map(const PlainFile &file, const std::string &path);
  MappedPlainFile(MappedPlainFile &&other) noexcept { *this = std::move(other); }
  MappedPlainFile &operator=(MappedPlainFile &&other) noexcept;
  ~MappedPlainFile();

  std::string_view bytes() const { return {data, size}; }
  /// Gives the resident pages back to the system; they are read again when touched.
  void drop() const;
  /// Fails if the file has become shorter. Call it after its bytes were used: after a new end within a page zeros are
  /// read, and no signal comes. A file that took over its name does not matter: the mapped one is complete.
  Status stillWhole() const;

private:
  const char *data = nullptr;
  size_t size = 0;
  int watched = -1; ///< where the handler of SIGBUS knows it
  std::string
      path; ///< with the two numbers below, what file it is; a descriptor for each of many files would be too many
  uint64_t device = 0, inode = 0;
};

/// Standard input, output and error that the caller left closed lead to /dev/null from now on; otherwise the next file
/// or socket would get such a number, and output would go into it. For a program's main, before all else.
void openStandardStreams();

} // namespace par::format
