// A file that several processes write at places of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

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
  void resize(uint64_t bytes);
  /// To the disk; throws Failure.
  void sync();

private:
  std::string path;
  int descriptor = -1;
};

} // namespace par::core
