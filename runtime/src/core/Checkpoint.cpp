#include "par/core/Checkpoint.h"

#include "par/core/Failure.h"
#include "par/core/Rectangles.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace par::core {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using format::Tensor;

namespace {

/// Waits until a file or folder is on the disk.
void syncPath(const std::string &path, int flags) {
  int descriptor = open(path.c_str(), flags | O_CLOEXEC);
  bool good = descriptor >= 0 && fsync(descriptor) == 0;
  int error = errno;
  if (descriptor >= 0)
    close(descriptor);
  if (!good)
    throw Failure::at(path, Message::cannotWrite, std::strerror(error));
}

std::string rankFile(uint32_t rank) { return "rank" + std::to_string(rank) + ".safetensors"; }

/// Writes this rank's rectangles, dense; returns the file's length.
uint64_t writeRankFile(Session &session, const std::string &path) {
  std::vector<ArrayHeader> headers;
  std::vector<const Tensor *> tensors;
  for (const Tensor &tensor : session.manifest().tensors)
    if (const format::Rectangle *part = isSaved(tensor) ? ownedPart(tensor, session.rank()) : nullptr) {
      headers.push_back({tensor.name, tensor.type, part->size});
      tensors.push_back(&tensor);
    }
  SafetensorsWriter writer(path, headers, true);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const format::Rectangle *part = ownedPart(*tensors[i], session.rank());
    auto local = session.tensor(tensors[i]->name);
    uint64_t elementBytes = format::sizeOf(tensors[i]->type);
    std::vector<int64_t> origin(part->size.size(), 0);
    forEachRun(part->size, origin, tensors[i]->layout.local, origin, part->size, [&](int64_t to, int64_t from, int64_t n) {
      writer.write(i, static_cast<uint64_t>(to) * elementBytes,
                   local.subspan(static_cast<uint64_t>(from) * elementBytes, static_cast<uint64_t>(n) * elementBytes));
    });
  }
  writer.sync();
  return writer.totalBytes();
}

json indexOf(const format::Manifest &manifest, const RunPosition &position, const std::vector<std::string> &sizes) {
  json index = {{"par_checkpoint", {1, 0}},       {"plan", manifest.planHash},
                {"step", position.step},          {"rows", position.rows},
                {"seed", position.seed},          {"order", position.shuffled ? "shuffled" : "sequential"}};
  for (size_t rank = 0; rank < sizes.size(); ++rank)
    index["files"][rankFile(static_cast<uint32_t>(rank))] = std::stoull(sizes[rank]);
  for (const Tensor &tensor : manifest.tensors) {
    if (!isSaved(tensor))
      continue;
    json entry = {{"type", format::toString(tensor.type)}, {"shape", tensor.layout.shape}, {"parts", json::array()}};
    for (const format::Rectangle &part : tensor.layout.parts)
      if (!part.ranks.empty() && elementCount(part.size) > 0)
        entry["parts"].push_back(
            {{"file", rankFile(part.ranks.front())}, {"start", part.start}, {"size", part.size}});
    index["tensors"][tensor.name] = std::move(entry);
  }
  return index;
}

/// Steps of the complete checkpoints in a folder, oldest first: by time, for an earlier run may have got further.
std::vector<uint64_t> completeSteps(const std::string &folder) {
  std::vector<std::pair<fs::file_time_type, uint64_t>> found;
  std::error_code error;
  for (const auto &item : fs::directory_iterator(folder, error)) {
    std::string name = item.path().filename().string();
    if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos && isCheckpoint(item.path().string()))
      found.emplace_back(fs::last_write_time(item.path() / "index.json", error), std::stoull(name));
  }
  std::sort(found.begin(), found.end());
  std::vector<uint64_t> steps;
  for (const auto &[time, step] : found)
    steps.push_back(step);
  return steps;
}

void finishSave(const std::string &folder, const std::string &part, const std::string &whole, const json &index,
                unsigned keep) {
  std::string indexPath = part + "/index.json";
  {
    std::ofstream out(indexPath);
    out << index.dump(1) << '\n';
    if (!out.flush())
      throw Failure::at(indexPath, Message::cannotWrite, std::strerror(errno));
  }
  syncPath(indexPath, O_RDONLY);
  syncPath(part, O_RDONLY | O_DIRECTORY);
  fs::remove_all(whole);
  fs::rename(part, whole);
  syncPath(folder, O_RDONLY | O_DIRECTORY);
  auto steps = completeSteps(folder);
  for (size_t i = 0; i + keep < steps.size(); ++i)
    fs::remove_all(folder + "/" + std::to_string(steps[i]));
}

} // namespace

std::string saveCheckpoint(Session &session, const std::string &folder, const RunPosition &position, unsigned keep) {
  comm::Control &control = session.jobControl();
  std::string whole = folder + "/" + std::to_string(position.step), part = whole + ".tmp";
  if (control.rank() == 0) {
    std::error_code error;
    fs::remove_all(part, error);
    fs::create_directories(part, error);
    if (error)
      throw Failure::at(folder, Message::cannotWrite, error.message());
  }
  control.barrier("save");
  uint64_t bytes = writeRankFile(session, part + "/" + rankFile(control.rank()));
  auto sizes = control.gather("saved", std::to_string(bytes));
  if (control.rank() == 0) {
    finishSave(folder, part, whole, indexOf(session.manifest(), position, sizes), keep);
    control.saved(whole);
  }
  control.barrier("save done");
  return whole;
}

bool isCheckpoint(const std::string &path) { return fs::is_regular_file(fs::path(path) / "index.json"); }

std::string newestCheckpoint(const std::string &folder) {
  auto steps = completeSteps(folder);
  if (steps.empty())
    throw Failure::at(folder, Message::noCheckpoint);
  return folder + "/" + std::to_string(steps.back());
}

namespace {

/// "; ckpt/100 is complete: --resume ckpt/100", if there is another one.
std::string otherComplete(const std::string &path) {
  std::string folder = fs::path(path).parent_path().string(), own = fs::path(path).filename().string();
  auto steps = completeSteps(folder.empty() ? "." : folder);
  for (size_t i = steps.size(); i-- > 0;)
    if (std::to_string(steps[i]) != own) {
      std::string other = (folder.empty() ? "" : folder + "/") + std::to_string(steps[i]);
      return "; " + other + " is complete: --resume " + other;
    }
  return "";
}

void checkFileSizes(const std::string &path, const json &files) {
  for (const auto &[name, bytes] : files.items()) {
    std::error_code error;
    uint64_t found = fs::file_size(fs::path(path) / name, error), expected = bytes.get<uint64_t>();
    if (error || found != expected)
      throw Failure::at(path, Message::checkpointSize, name, error ? "0" : grouped(found), grouped(expected),
                        otherComplete(path));
  }
}

StoredArray storedArray(const std::string &path, const std::string &name, const json &entry,
                        std::map<std::string, std::shared_ptr<SafetensorsReader>> &readers) {
  StoredArray array;
  array.shape = entry.at("shape").get<std::vector<int64_t>>();
  for (const json &part : entry.at("parts")) {
    std::string file = part.at("file").get<std::string>();
    auto &reader = readers[file];
    if (!reader)
      reader = std::make_shared<SafetensorsReader>((fs::path(path) / fs::path(file).filename()).string());
    const ArrayView *view = reader->find(name);
    auto size = part.at("size").get<std::vector<int64_t>>(), start = part.at("start").get<std::vector<int64_t>>();
    if (!view || view->shape != size || start.size() != size.size() || size.size() != array.shape.size())
      throw Failure::at(path, Message::checkpointIndex, "part of \"" + name + "\" is not in " + file);
    array.type = view->type;
    array.pieces.push_back({start, size, view->data.data()});
  }
  return array;
}

} // namespace

Checkpoint openCheckpoint(const std::string &path) {
  if (!isCheckpoint(path))
    throw Failure::at(path, Message::noCheckpoint);
  Checkpoint checkpoint;
  checkpoint.store.place = path;
  try {
    std::ifstream in(fs::path(path) / "index.json");
    json index = json::parse(in);
    if (index.at("par_checkpoint").at(0) != 1)
      throw Failure::at(path, Message::checkpointIndex, "written by a newer par-run");
    checkFileSizes(path, index.at("files"));
    checkpoint.position = {index.at("step").get<uint64_t>(), index.at("rows").get<uint64_t>(),
                           index.at("seed").get<uint64_t>(), index.at("order") == "shuffled"};
    std::map<std::string, std::shared_ptr<SafetensorsReader>> readers;
    for (const auto &[name, entry] : index.at("tensors").items())
      checkpoint.store.arrays[name] = storedArray(path, name, entry, readers);
    for (auto &[file, reader] : readers)
      checkpoint.store.readers.push_back(reader);
  } catch (const json::exception &error) {
    throw Failure::at(path, Message::checkpointIndex, error.what());
  }
  return checkpoint;
}

} // namespace par::core
