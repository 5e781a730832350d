// Writes the trained weights whole, as a safetensors file or into a copy of the compiled model. Each rank writes the
// parts that it owns, transposed where the model's file is.
#include "par/save/Export.h"

#include "par/files/Convert.h"
#include "par/files/FileWriter.h"
#include "par/files/PartFile.h"
#include "par/files/Rectangles.h"
#include "par/messages/Failure.h"
#include "par/weights/Weights.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

namespace par::core {

namespace fs = std::filesystem;
using format::Tensor;

namespace {

/// The element type in the model's file; the bundle's master is f32 whatever that is.
format::DType typeAt(const Tensor &tensor, const format::Source &place) {
  return isConvertible(tensor.type, place.type) ? place.type : tensor.type;
}

/// Calls `write(byte of the whole tensor, bytes)` for all that this rank owns of it, as elements of `type`.
template <class Write>
void writeOwned(Session &session, const Tensor &tensor, format::DType type, Write write) {
  const format::Rectangle *owned = ownedPart(tensor, session.jobControl().rank());
  if (!owned)
    return;
  auto local = session.tensor(tensor.name);
  uint64_t bytes = format::sizeOf(type), localBytes = format::sizeOf(tensor.type);
  std::vector<int64_t> origin(owned->size.size(), 0);
  std::vector<std::byte> converted;
  auto run = [&](int64_t to, int64_t from, int64_t n) {
    auto part = local.subspan(static_cast<uint64_t>(from) * localBytes, static_cast<uint64_t>(n) * localBytes);
    if (type != tensor.type) {
      converted.resize(static_cast<uint64_t>(n) * bytes);
      convertElements(converted.data(), type, part.data(), tensor.type, n);
      part = converted;
    }
    write(static_cast<uint64_t>(to) * bytes, part);
  };
  forEachRun(tensor.layout.shape, owned->start, tensor.layout.local, origin, owned->size, run);
}

/// The same for the transposed matrix. This rank's part is gathered first, since runs of rows are not runs of columns.
template <class Write>
void writeTransposed(Session &session, const Tensor &tensor, format::DType type, Write write) {
  auto rows = static_cast<uint64_t>(tensor.stored[0]), columns = static_cast<uint64_t>(tensor.stored[1]);
  uint64_t bytes = format::sizeOf(type);
  std::vector<std::byte> gathered;
  std::vector<bool> owned(rows * columns);
  writeOwned(session, tensor, type, [&](uint64_t at, std::span<const std::byte> part) {
    gathered.resize(rows * columns * bytes);
    uint64_t first = at / bytes;
    for (uint64_t i = 0; i < part.size() / bytes; ++i) {
      uint64_t to = (first + i) % columns * rows + (first + i) / columns;
      std::memcpy(gathered.data() + to * bytes, part.data() + i * bytes, bytes);
      owned[to] = true;
    }
  });
  for (uint64_t begin = 0, end; begin < owned.size(); begin = end) {
    for (end = begin; end < owned.size() && owned[end];)
      ++end;
    if (end > begin)
      write(begin * bytes, std::span<const std::byte>(gathered).subspan(begin * bytes, (end - begin) * bytes));
    else
      ++end;
  }
}

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool isExported(const Tensor &tensor) { return isWeight(tensor) && isSaved(tensor); }

/// The folder of a file: "a" of "a/b", "." of "b".
fs::path folderOf(const fs::path &path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// One file of a model and where its copy goes; in a list the model itself is first.
struct ModelCopy {
  fs::path from, to;
  std::string name; ///< as the manifest's sources say it
};

/// Places of a tensor in the model's files: one, and those that a plan tied to it.
std::vector<format::Source> placesOf(const Tensor &tensor) {
  std::vector<format::Source> places = tensor.copies;
  if (tensor.source)
    places.push_back(*tensor.source);
  return places;
}

/// Throws Failure where the copies cannot hold the weights or would lie on the model.
std::vector<ModelCopy> planCopies(const format::Manifest &manifest, const std::string &bundle, const fs::path &path,
                                  bool checkData) {
  fs::path model = findCompiledModel(manifest, bundle, Message::exportMissing, Message::exportChanged);
  if (checkData)
    checkCompiledData(manifest, path.string(), model.string(), Message::exportDataChanged);
  std::vector<ModelCopy> copies{{model, path, model.filename()}};
  std::map<std::string, std::string> beside; // data files, each with a tensor in it
  for (const Tensor &tensor : manifest.tensors) {
    if (!isExported(tensor))
      continue;
    if (!tensor.source && tensor.kind != format::TensorKind::Buffer)
      throw Failure::at(path.string(), Message::exportNoPlace, tensor.name, model.string());
    for (const format::Source &place : placesOf(tensor)) {
      if (place.file.empty())
        throw Failure::at(path.string(), Message::exportNoPlace, tensor.name, model.string());
      if (model.filename() != place.file)
        beside.emplace(place.file, tensor.name);
    }
  }
  for (const auto &[file, tensor] : beside) {
    fs::path data = besideModel(model, file);
    if (auto there = format::isThere(data.string()); !there)
      throw Failure::at(data.string(), Message::cannotOpen, there.message());
    if (std::error_code ignored; !fs::is_regular_file(data, ignored))
      throw Failure::at(path.string(), Message::exportDataMissing, data.string(), tensor);
    copies.push_back({data, folderOf(path) / file, file});
  }
  std::error_code ignored;
  for (const ModelCopy &copy : copies)
    if (fs::equivalent(copy.from, copy.to, ignored))
      throw Failure::at(copy.to.string(), Message::exportOnModel);
  return copies;
}

void copyFiles(const std::vector<ModelCopy> &copies, const std::vector<PartFile> &parts) {
  for (size_t i = 0; i < copies.size(); ++i) {
    std::error_code error;
    fs::copy_file(copies[i].from, parts[i].name(), fs::copy_options::overwrite_existing, error);
    if (error)
      throw Failure::at(parts[i].name(), Message::cannotWrite, error.message());
  }
}

/// "model." if every parameter's name begins so and is also known without it; else "". Names without it are read, not
/// written: a file with both would be twice as large, and neither module would load it.
std::string wrapperOf(const format::Manifest &manifest) {
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

} // namespace

void exportWeights(Session &session, const std::string &path) {
  comm::Control &control = session.jobControl();
  std::vector<ArrayHeader> headers;
  std::vector<const Tensor *> tensors;
  std::string wrapper = wrapperOf(session.manifest());
  auto hasLonger = [&](const std::vector<std::string> &names, const std::string &name) {
    return !wrapper.empty() && contains(names, wrapper + name);
  };
  for (const Tensor &tensor : session.manifest().tensors) {
    if (!isExported(tensor))
      continue;
    format::DType type = tensor.source ? typeAt(tensor, *tensor.source) : tensor.type;
    if (tensor.transposed.empty())
      headers.push_back({tensor.name, type, tensor.stored});
    for (const std::string &alias : tensor.aliases)
      if (wrapper + alias != tensor.name && !hasLonger(tensor.aliases, alias))
        headers.push_back({alias, type, tensor.stored});
    for (const std::string &name : tensor.transposed)
      if (!hasLonger(tensor.transposed, name))
        headers.push_back({name, type, {tensor.stored[1], tensor.stored[0]}});
    tensors.resize(headers.size(), &tensor);
  }
  PartFile part(path, control);
  if (control.rank() == 0)
    SafetensorsWriter(part.name(), headers, true, {{"format", "pt"}});
  control.barrier("export");
  SafetensorsWriter writer(part.name(), headers, false, {{"format", "pt"}});
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto write = [&](uint64_t at, std::span<const std::byte> bytes) { writer.write(i, at, bytes); };
    if (contains(tensors[i]->transposed, headers[i].name))
      writeTransposed(session, *tensors[i], headers[i].type, write);
    else
      writeOwned(session, *tensors[i], headers[i].type, write);
  }
  writer.sync();
  control.barrier("exported");
  part.giveName();
  if (control.rank() == 0)
    control.wrote(path);
  control.barrier("export done");
}

void checkModelExport(const format::Manifest &manifest, const std::string &bundle, const std::string &path,
                      bool checkData) {
  planCopies(manifest, bundle, path, checkData);
}

void exportModel(Session &session, const std::string &bundle, const std::string &path) {
  comm::Control &control = session.jobControl();
  const format::Manifest &manifest = session.manifest();
  std::vector<ModelCopy> copies = planCopies(manifest, bundle, path, control.rank() == 0);
  std::vector<PartFile> parts;
  for (const ModelCopy &copy : copies) {
    std::error_code error; // opening the file below reports it
    fs::create_directories(folderOf(copy.to), error);
    parts.emplace_back(copy.to.string(), control);
  }
  if (control.rank() == 0)
    copyFiles(copies, parts);
  control.barrier("export");
  std::map<std::string, FileWriter> writers;
  for (size_t i = 0; i < copies.size(); ++i)
    writers.try_emplace(copies[i].name, parts[i].name());
  for (const Tensor &tensor : manifest.tensors)
    for (const format::Source &place : isExported(tensor) ? placesOf(tensor) : std::vector<format::Source>()) {
      auto write = [&](uint64_t at, std::span<const std::byte> bytes) {
        writers.at(place.file).write(place.offset + at, bytes);
      };
      if (place.transposed)
        writeTransposed(session, tensor, typeAt(tensor, place), write);
      else
        writeOwned(session, tensor, typeAt(tensor, place), write);
    }
  for (auto &[file, writer] : writers)
    writer.sync();
  control.barrier("exported");
  for (size_t i = parts.size(); i-- > 0;) // the model last: a file of its name finds its weights
    parts[i].giveName();
  if (control.rank() == 0)
    control.wrote(path);
  control.barrier("export done");
}

} // namespace par::core
