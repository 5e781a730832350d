// Writes the trained weights whole, as a safetensors file or into a copy of the compiled model. Each rank writes the
// parts that it owns, transposed where the model's file is.
#include "par/save/Export.h"

#include "ExportedFiles.h"
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

/// Calls `write(byte of the whole tensor, bytes)` for all that this rank owns of it, as elements of `type`. Throws
/// Failure about `path` where `type` does not reach a number.
template <class Write>
void writeOwned(Session &session, const Tensor &tensor, format::DType type, const std::string &path, Write write) {
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
      int64_t bad = convertElements(converted.data(), type, part.data(), tensor.type, n);
      if (bad < n)
        throw Failure::at(path, Message::exportRange, tensor.name,
                          floatAt(tensor.type, part.data(), static_cast<uint64_t>(bad)), format::toString(type));
      part = converted;
    }
    write(static_cast<uint64_t>(to) * bytes, part);
  };
  forEachRun(tensor.layout.shape, owned->start, tensor.layout.local, origin, owned->size, run);
}

/// The same for the transposed matrix. This rank's part is gathered first, since runs of rows are not runs of columns.
template <class Write>
void writeTransposed(Session &session, const Tensor &tensor, format::DType type, const std::string &path, Write write) {
  auto rows = static_cast<uint64_t>(tensor.stored[0]), columns = static_cast<uint64_t>(tensor.stored[1]);
  uint64_t bytes = format::sizeOf(type);
  std::vector<std::byte> gathered;
  std::vector<bool> owned(rows * columns);
  writeOwned(session, tensor, type, path, [&](uint64_t at, std::span<const std::byte> part) {
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

} // namespace

void exportWeights(Session &session, const std::string &path, uint64_t maxShard, bool averages) {
  comm::Control &control = session.jobControl();
  std::vector<ExportedFile> files = planExport(session.manifest(), path, maxShard);
  const std::map<std::string, std::string> ofTorch{{"format", "pt"}};
  std::vector<PartFile> parts;
  for (const ExportedFile &file : files)
    parts.emplace_back(file.path, control);
  if (control.rank() == 0)
    for (size_t f = 0; f < files.size(); ++f)
      SafetensorsWriter(parts[f].name(), files[f].headers(), true, ofTorch);
  for (size_t f = 0; f < files.size(); ++f) {
    // Before all have opened it, none fails, here or in the file before, and removes it: the others would say that it
    // is not there.
    control.barrier("export");
    SafetensorsWriter writer(parts[f].name(), files[f].headers(), false, ofTorch);
    control.barrier("export opened");
    for (size_t i = 0; i < files[f].arrays.size(); ++i) {
      const auto &[header, tensor] = files[f].arrays[i];
      const Tensor &held = averages ? averageOf(session.manifest(), *tensor) : *tensor;
      auto write = [&](uint64_t at, std::span<const std::byte> bytes) { writer.write(i, at, bytes); };
      if (contains(tensor->transposed, header.name))
        writeTransposed(session, held, header.type, files[f].path, write);
      else
        writeOwned(session, held, header.type, files[f].path, write);
    }
    writer.sync();
  }
  control.barrier("exported");
  // A set of which only some files are new must not load: its index comes last.
  if (std::error_code ignored; control.rank() == 0 && files.size() > 1)
    fs::remove(fs::path(path) / indexName, ignored);
  for (PartFile &part : parts)
    part.giveName();
  if (control.rank() == 0) {
    if (files.size() > 1)
      writeIndex(path, files);
    control.wrote(path);
  }
  control.barrier("export done");
}

void checkModelExport(const format::Manifest &manifest, const std::string &bundle, const std::string &path,
                      bool checkData) {
  planCopies(manifest, bundle, path, checkData);
}

void exportModel(Session &session, const std::string &bundle, const std::string &path, bool averages) {
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
  control.barrier("export opened");
  for (const Tensor &tensor : manifest.tensors)
    for (const format::Source &place : isExported(tensor) ? placesOf(tensor) : std::vector<format::Source>()) {
      auto write = [&](uint64_t at, std::span<const std::byte> bytes) {
        writers.at(place.file).write(place.offset + at, bytes);
      };
      const Tensor &held = averages ? averageOf(manifest, tensor) : tensor;
      if (place.transposed)
        writeTransposed(session, held, typeAt(tensor, place), path, write);
      else
        writeOwned(session, held, typeAt(tensor, place), path, write);
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
