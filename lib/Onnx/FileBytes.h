#ifndef PAR_LIB_ONNX_FILEBYTES_H
#define PAR_LIB_ONNX_FILEBYTES_H

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
  ~FileBytes();
  std::string_view view() const { return {data, size}; }

private:
  FileBytes() = default;
  void inflateAll(uint64_t limit);
  const char *data = nullptr;
  size_t size = 0;
  void *mapping = nullptr;
  size_t mappedSize = 0;
  std::string inflated;
};

/// Resolves the location of external data inside the model's folder. Throws std::runtime_error on an absolute path,
/// on `..` and on a symbolic link that leads out; returns "" if there is no such file.
std::string resolveExternal(const std::string &modelPath, const std::string &location);

/// Reads `length` bytes at `offset`; throws std::runtime_error if the file is shorter.
std::string readRange(const std::string &path, uint64_t offset, uint64_t length);
uint64_t fileSize(const std::string &path);

} // namespace par::onnx

#endif // PAR_LIB_ONNX_FILEBYTES_H
