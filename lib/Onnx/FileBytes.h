#pragma once

#include "par/format/PlainFile.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace par::onnx {

/// A read-only file: mapped if plain, inflated into memory if gzip.
class FileBytes {
public:
  /// Throws std::runtime_error with the reason.
  static std::shared_ptr<const FileBytes> open(const std::string &path, uint64_t limit, bool &compressed);
  std::string_view view() const { return content; }
  /// The file's bytes, compressed or not.
  std::string_view raw() const { return mapped.bytes(); }
  /// For who has used the bytes: throws std::runtime_error if the file has become shorter meanwhile.
  void checkWhole() const;

private:
  FileBytes() = default;
  void inflateAll(uint64_t limit);
  format::MappedPlainFile mapped;
  std::string inflated;
  std::string_view content; ///< of one of the two
};

/// Resolves the location of external data inside the model's folder or, if it is not there and the model is a link,
/// inside the folder of the link's target. Throws std::runtime_error on an absolute path, on `..` and on a symbolic
/// link that leads out; returns "" if there is no such file.
std::string resolveExternal(const std::string &modelPath, const std::string &location);

/// Opens external data; throws std::runtime_error that names `location`.
format::PlainFile openExternal(const std::string &path, const std::string &location);
/// Reads `length` bytes at `offset`; throws std::runtime_error if the file is shorter.
std::string readRange(const std::string &path, const std::string &location, uint64_t offset, uint64_t length);

} // namespace par::onnx
