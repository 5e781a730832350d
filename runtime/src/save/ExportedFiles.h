// The files of an export, before they are written.
#pragma once

#include "par/files/Safetensors.h"
#include "par/format/Manifest.h"

namespace par::core {

inline constexpr const char *indexName = "model.safetensors.index.json";

/// An array of a file, and the tensor whose values it has.
struct ExportedArray {
  ArrayHeader header;
  const format::Tensor *tensor;
};

struct ExportedFile {
  std::string path;
  std::vector<ExportedArray> arrays;

  std::vector<ArrayHeader> headers() const;
};

/// One file, or those of a folder, each of at most `maxShard` bytes if no array is larger.
std::vector<ExportedFile> planExport(const format::Manifest &manifest, const std::string &path, uint64_t maxShard);

/// Writes indexName: the file of each tensor.
void writeIndex(const std::string &folder, const std::vector<ExportedFile> &files);

bool isExported(const format::Tensor &tensor);
bool contains(const std::vector<std::string> &names, const std::string &name);
/// The element type in the model's file; the bundle's master is f32 whatever that is.
format::DType typeAt(const format::Tensor &tensor, const format::Source &place);

} // namespace par::core
