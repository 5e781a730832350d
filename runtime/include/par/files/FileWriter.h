// Files that are written: by several processes at places of their own, or from front to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace par::core {

class FileWriter {
public:
  /// Opens a file that is there; `create`: makes it, or empties the one that is there. Throws Failure.
  explicit FileWriter(const std::string &path, bool create = false);
  ~FileWriter();
  FileWriter(const FileWriter &) = delete;
  FileWriter &operator=(const FileWriter &) = delete;
  /// All bytes, from byte `at` of the file; throws Failure.
  void write(uint64_t at, std::span<const std::byte> bytes);
  /// The same, of whole blocks past the system's cache where the file system can: nothing is copied, and sync() has no
  /// bytes to wait for. `at` and the address must be multiples of `block` for that; else it is write().
  void writeDirect(uint64_t at, std::span<const std::byte> bytes);
  static constexpr size_t block = 4096;
  /// False once the file system has refused to write past the cache.
  bool isDirect() const { return direct; }
  void resize(uint64_t bytes);
  /// Bytes that have been written may go to the disk meanwhile, so that sync() has less to wait for.
  void startSync(uint64_t at, uint64_t bytes);
  /// To the disk; throws Failure.
  void sync();

private:
  size_t tryDirect(uint64_t at, std::span<const std::byte> bytes);

  std::string path;
  int descriptor = -1;
  bool direct = true;
};

/// A file, pipe or device that is written from front to end, each piece at once.
class StreamWriter {
public:
  /// Makes the file, or empties the one that is there; `append`: writes after its end. It does not wait for a pipe
  /// without a reader. Throws Failure.
  explicit StreamWriter(const std::string &path, bool append = false);
  ~StreamWriter();
  StreamWriter(const StreamWriter &) = delete;
  StreamWriter &operator=(const StreamWriter &) = delete;
  /// All of the text; throws Failure.
  void write(std::string_view text);

private:
  std::string path;
  int descriptor = -1;
};

} // namespace par::core
