// Copies the bytes that the manifest's sources name, as a safetensors file: 8 bytes of header length, a JSON header
// padded by blanks, data.
#include "par/Compiler/BundleWeights.h"

#include "par/Onnx/Model.h"
#include "par/format/PlainFile.h"
#include "par/format/SafetensorsHeader.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace llvm;

namespace par {

namespace {

class WeightsCopy {
public:
  WeightsCopy(const format::Bundle &bundle, const std::string &model) : bundle(bundle), model(model) {}

  /// False after an error, which is then `reason`.
  bool add(const format::Tensor &tensor);
  /// The file.
  std::string take();

  std::string reason;

private:
  const format::MappedPlainFile *open(const std::string &file);
  void append(const format::Tensor &tensor, format::DType type, StringRef bytes);

  const format::Bundle &bundle;
  const std::string &model;
  std::map<std::string, format::MappedPlainFile> files;
  json::Object header;
  std::string data;
};

} // namespace

/// A file of the model; null after an error.
const format::MappedPlainFile *WeightsCopy::open(const std::string &file) {
  if (auto found = files.find(file); found != files.end())
    return &found->second;
  std::string path = file == sys::path::filename(model) ? model : onnx::pathOfData(model, file);
  auto mapped = path.empty() ? format::Expected<format::MappedPlainFile>(format::Error{"is not there"})
                             : format::MappedPlainFile::open(path);
  if (!mapped) {
    reason = "external data \"" + file + "\": " + mapped.message();
    return nullptr;
  }
  return &files.emplace(file, std::move(*mapped)).first->second;
}

void WeightsCopy::append(const format::Tensor &tensor, format::DType type, StringRef bytes) {
  auto begin = static_cast<int64_t>(data.size());
  data += bytes;
  header[tensor.name] = json::Object{{"dtype", StringRef(format::safetensorsName(type))},
                                     {"shape", json::Array(tensor.stored)},
                                     {"data_offsets", json::Array{begin, static_cast<int64_t>(data.size())}}};
}

bool WeightsCopy::add(const format::Tensor &tensor) {
  if (tensor.source) {
    const format::MappedPlainFile *file = open(tensor.source->file);
    if (!file)
      return false;
    StringRef bytes = StringRef(file->bytes()).substr(tensor.source->offset, tensor.source->length);
    if (bytes.size() != tensor.source->length) {
      reason = "external data \"" + tensor.source->file + "\" ends before \"" + tensor.name + "\"";
      return false;
    }
    append(tensor, tensor.source->type, bytes);
    return true;
  }
  auto constants = find_if(bundle.blobs, [](const format::Blob &blob) { return blob.name == format::constantsFile; });
  if (!tensor.value || constants == bundle.blobs.end()) {
    reason = "\"" + tensor.name +
             "\" has no value in the model that par-run could read: a model without its weights, or a compressed one";
    return false;
  }
  uint64_t count = 1;
  for (int64_t dim : tensor.stored)
    count *= static_cast<uint64_t>(dim);
  append(tensor, tensor.type, StringRef(constants->bytes).substr(*tensor.value, count * format::sizeOf(tensor.type)));
  return true;
}

std::string WeightsCopy::take() {
  std::string text = formatv("{0}", json::Value(std::move(header)));
  text.append((8 - text.size() % 8) % 8, ' '); // data of all types are aligned
  std::string file(8, '\0');
  support::endian::write64le(file.data(), text.size());
  return file + text + data;
}

bool addWeights(format::Bundle &bundle, const std::string &model, DiagnosticSink sink) {
  WeightsCopy copy(bundle, model);
  for (const format::Tensor &tensor : bundle.manifest.tensors) {
    bool isWeight = tensor.kind == format::TensorKind::Parameter || tensor.kind == format::TensorKind::Frozen ||
                    tensor.kind == format::TensorKind::Buffer;
    if (isWeight && !copy.add(tensor)) {
      CompileDiagnostic finding;
      finding.file = model;
      finding.message = "--with-weights: " + copy.reason;
      sink(finding);
      return false;
    }
  }
  bundle.blobs.push_back({format::weightsFile, copy.take()});
  return true;
}

} // namespace par
