#include "ExportedFiles.h"

#include "par/files/Convert.h"
#include "par/files/FileWriter.h"
#include "par/files/PartFile.h"
#include "par/messages/Failure.h"
#include "par/save/Export.h"
#include "par/weights/Weights.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace par::core {

namespace fs = std::filesystem;
using format::Tensor;

constexpr const char *wholeName = "model.safetensors";

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool isExported(const Tensor &tensor) { return isWeight(tensor) && isSaved(tensor); }

format::DType typeAt(const Tensor &tensor, const format::Source &place) {
  return isConvertible(tensor.type, place.type) ? place.type : tensor.type;
}

bool isExportFile(const std::string &path) { return path.ends_with(".safetensors") || path.ends_with(".onnx"); }

bool isExportFolder(const std::string &path) {
  std::error_code ignored;
  return path.ends_with("/") || fs::is_directory(path, ignored);
}

std::vector<ArrayHeader> ExportedFile::headers() const {
  std::vector<ArrayHeader> all;
  for (const ExportedArray &array : arrays)
    all.push_back(array.header);
  return all;
}

/// "model." if every parameter's name begins so and is also known without it; else "". Names without it are read, not
/// written: a file with both would be twice as large, and neither module would load it.
static std::string wrapperOf(const format::Manifest &manifest) {
  std::string wrapper;
  for (const Tensor &tensor : manifest.tensors) {
    if (tensor.kind != format::TensorKind::Parameter || !tensor.transposed.empty())
      continue;
    std::string first = tensor.name.substr(0, tensor.name.find('.') + 1);
    if (!contains(tensor.aliases, tensor.name.substr(first.size())) || (!wrapper.empty() && first != wrapper))
      return "";
    wrapper = first;
  }
  return wrapper;
}

static uint64_t bytesOf(const ArrayHeader &header) {
  return static_cast<uint64_t>(elementCount(header.shape)) * format::sizeOf(header.type);
}

/// All arrays, tied ones under each of their names.
static std::vector<ExportedArray> arraysOf(const format::Manifest &manifest) {
  std::vector<ExportedArray> arrays;
  std::string wrapper = wrapperOf(manifest);
  auto hasLonger = [&](const std::vector<std::string> &names, const std::string &name) {
    return !wrapper.empty() && contains(names, wrapper + name);
  };
  for (const Tensor &tensor : manifest.tensors) {
    if (!isExported(tensor))
      continue;
    format::DType type = tensor.source ? typeAt(tensor, *tensor.source) : tensor.type;
    if (tensor.transposed.empty())
      arrays.push_back({{tensor.name, type, tensor.stored}, &tensor});
    for (const std::string &alias : tensor.aliases)
      if (wrapper + alias != tensor.name && !hasLonger(tensor.aliases, alias))
        arrays.push_back({{alias, type, tensor.stored}, &tensor});
    for (const std::string &name : tensor.transposed)
      if (!hasLonger(tensor.transposed, name))
        arrays.push_back({{name, type, {tensor.stored[1], tensor.stored[0]}}, &tensor});
  }
  return arrays;
}

std::vector<ExportedFile> planExport(const format::Manifest &manifest, const std::string &path, uint64_t maxShard) {
  std::vector<ExportedArray> arrays = arraysOf(manifest);
  if (!isExportFolder(path))
    return {{path, std::move(arrays)}};
  std::vector<ExportedFile> files(1);
  uint64_t filled = 0;
  for (ExportedArray &array : arrays) {
    uint64_t bytes = bytesOf(array.header);
    if (filled > 0 && (bytes > maxShard || filled > maxShard - bytes)) {
      files.emplace_back();
      filled = 0;
    }
    filled += bytes;
    files.back().arrays.push_back(std::move(array));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    char name[64];
    snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, files.size());
    files[i].path = (fs::path(path) / (files.size() == 1 ? wholeName : name)).string();
  }
  return files;
}

void writeIndex(const std::string &folder, const std::vector<ExportedFile> &files) {
  nlohmann::json names = nlohmann::json::object();
  uint64_t total = 0;
  for (const ExportedFile &file : files)
    for (const ExportedArray &array : file.arrays) {
      names[array.header.name] = fs::path(file.path).filename().string();
      total += bytesOf(array.header);
    }
  nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(names)}};
  PartFile part((fs::path(folder) / indexName).string());
  FileWriter writer(part.name(), true);
  std::string text = index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  writer.write(0, std::as_bytes(std::span(text)));
  writer.sync();
  part.giveName();
}

void checkFolderExport(const format::Manifest &manifest, const std::string &folder, uint64_t maxShard) {
  std::vector<std::string> written;
  for (const ExportedFile &file : planExport(manifest, folder, maxShard))
    written.push_back(fs::path(file.path).filename().string());
  constexpr size_t most = 500; // each is open until all are written
  if (written.size() > most)
    throw Failure::at("par-run", Message::flagBad, "--max-shard",
                      core::format("a size that makes at most {} files, not {}", most, written.size()), maxShard)
        .exitsWith(exitUsage);
  if (written.size() > 1)
    written.push_back(indexName);
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (std::string name = at->path().filename().string();
        (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) && !contains(written, name))
      throw Failure::at(folder, Message::exportStale, name);
}

} // namespace par::core
