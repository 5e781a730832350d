// Reads and writes the safetensors format: 8 bytes of header length, a JSON header, data. Files are mapped, never
// copied; par/format/SafetensorsHeader.h lists the refusals.
#pragma once

#include "par/files/FileWriter.h"
#include "par/format/PlainFile.h"
#include "par/format/Program.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace par::core {

using format::DType;

/// A plain file mapped for reading; move-only. How it is opened: par/format/PlainFile.h.
class MappedFile {
public:
  MappedFile() = default;
  /// Throws Failure if it cannot be opened.
  explicit MappedFile(const std::string &path);
  std::span<const std::byte> bytes() const;
  const std::string &path() const { return name; }
  /// Gives the resident pages back to the system; they are read again when touched.
  void drop() const { content.drop(); }
  /// Call after the bytes were used: throws Failure if the file has become shorter meanwhile.
  void checkWhole() const;

private:
  format::MappedPlainFile content;
  std::string name;
};

/// One array of a file.
struct ArrayView {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// Number of elements; a scalar has one.
int64_t elementCount(std::span<const int64_t> shape);
/// "f32[2, 3]", "i64[]".
std::string describeArray(DType type, std::span<const int64_t> shape);
/// "[2, 3]".
std::string describeShape(std::span<const int64_t> shape);

/// The content of a text that a user names, of at most 256 MiB. Throws Failure if it cannot be read.
std::string readTextFile(const std::string &path);

class SafetensorsReader {
public:
  /// Maps the file and checks the whole header; throws Failure naming file and tensor.
  explicit SafetensorsReader(const std::string &path);
  const std::map<std::string, ArrayView> &arrays() const { return content; }
  /// Null if there is none of that name.
  const ArrayView *find(const std::string &name) const;
  const std::map<std::string, std::string> &metadata() const { return meta; }
  const std::string &path() const { return file.path(); }
  /// The whole file.
  std::span<const std::byte> bytes() const { return file.bytes(); }
  /// Length and header, and all that follows them.
  std::span<const std::byte> headerBytes() const { return file.bytes().first(dataBegin); }
  std::span<const std::byte> dataBytes() const { return file.bytes().subspan(dataBegin); }
  void drop() const { file.drop(); }
  void checkWhole() const { file.checkWhole(); }

private:
  MappedFile file;
  size_t dataBegin = 0;
  std::map<std::string, ArrayView> content;
  std::map<std::string, std::string> meta;
};

/// Arrays of a file to write, in the order of the data.
struct ArrayHeader {
  std::string name;
  DType type = DType::F32;
  std::vector<int64_t> shape;
};

/// Header first, data in any order and by several processes: each opens the same path with the same headers.
class SafetensorsWriter {
public:
  /// `create`: makes the file at its full length and writes the header; otherwise opens what another made. Data begin
  /// at a multiple of `alignment`.
  SafetensorsWriter(const std::string &path, std::vector<ArrayHeader> arrays, bool create,
                    const std::map<std::string, std::string> &metadata = {}, size_t alignment = 8);
  /// Writes bytes of array `index` from byte `offset` of it.
  void write(size_t index, uint64_t offset, std::span<const std::byte> bytes);
  /// Writes bytes of all arrays, in their order, from byte `offset`, as FileWriter::writeDirect().
  void writeData(uint64_t offset, std::span<const std::byte> bytes) { file.writeDirect(header.size() + offset, bytes); }
  bool isDirect() const { return file.isDirect(); }
  /// Replaces text of the header that stands in it once, by one of the same length that needs no escapes.
  void amendHeader(const std::string &from, const std::string &to);
  /// Length and header as they stand in the file.
  std::span<const std::byte> headerBytes() const { return std::as_bytes(std::span(header)); }
  /// As FileWriter's, of data that stands before byte `end` and has not been started yet.
  void startSync(uint64_t end);
  /// To the disk; throws Failure.
  void sync() { file.sync(); }
  uint64_t totalBytes() const { return total; }

private:
  FileWriter file;
  std::string header;
  std::vector<uint64_t> begins;
  uint64_t total = 0, started = 0;
};

} // namespace par::core
