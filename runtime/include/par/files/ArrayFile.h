// Named arrays of a file, whatever its format: safetensors, numpy's .npy and .npz, PyTorch's .pt. Files are mapped;
// copied are only compressed arrays, and tensors whose elements do not lie in a row.
#pragma once

#include "par/files/Safetensors.h"

#include <memory>

namespace par::core {

/// Whether a file of this name holds arrays: by its ending.
bool isArrayFile(const std::string &path);
/// Whether it is one of PyTorch's: .pt, .pth, .ckpt, .bin. The last is for weights only; as data it may be anything.
bool isTorchFile(const std::string &path);

class ArrayFile {
public:
  /// Maps the file and checks all that it says of its arrays; throws Failure. The array of a .npy, and of a .pt that
  /// is one tensor, has the file's name without its ending.
  explicit ArrayFile(const std::string &path);

  const std::map<std::string, ArrayView> &arrays() const { return content; }
  /// Null if there is none of that name.
  const ArrayView *find(const std::string &name) const;
  const std::string &path() const { return file.path(); }
  std::span<const std::byte> bytes() const { return file.bytes(); }
  void drop() const { file.drop(); }
  void checkWhole() const { file.checkWhole(); }

private:
  void readSafetensors();
  void readNpy(std::string_view bytes, const std::string &name);
  void readNpz();
  void readTorch();
  void add(const std::string &name, ArrayView array);

  MappedFile file;
  std::map<std::string, ArrayView> content;
  std::vector<std::unique_ptr<std::byte[]>> copies;
};

} // namespace par::core
