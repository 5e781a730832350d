// Writes and opens saves: each rank writes its rectangles into one safetensors file, rank 0 the index when all are on
// the disk, and the finished folder is moved into place. Reading checks every file's facts against the index.
#include "par/save/Checkpoint.h"

#include "SaveIndex.h"

#include "par/files/Checksum.h"
#include "par/files/Rectangles.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <filesystem>

namespace par::core {

namespace fs = std::filesystem;
using format::Tensor;

namespace {

/// Facts of the save in the header of a rank's file.
using Facts = std::map<std::string, std::string>;

Facts factsOf(const std::string &plan, const std::string &run, uint64_t step, size_t rank, size_t ranks) {
  return {{"par_checkpoint", std::to_string(saveFormat)},
          {"plan", plan},
          {"run", run},
          {"step", std::to_string(step)},
          {"rank", std::to_string(rank)},
          {"ranks", std::to_string(ranks)}};
}

/// Stands for the checksum until all data has been written.
const std::string noChecksum(32, '?');

/// The data of a rank's file from front to end: summed, gathered into long writes.
class RankFileData {
public:
  explicit RankFileData(SafetensorsWriter &writer) : writer(writer) { buffer.reserve(chunk); }

  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      size_t count = std::min(chunk - buffer.size(), bytes.size());
      if (count == chunk) {
        write(bytes.first(count)); // as long as a buffer: as it is
      } else {
        buffer.insert(buffer.end(), bytes.begin(), bytes.begin() + static_cast<long>(count));
        if (buffer.size() == chunk)
          flush();
      }
      bytes = bytes.subspan(count);
    }
  }
  std::string finish() {
    flush();
    return checksum.digest();
  }

private:
  /// A chunk whose checksum was computed is still in the cache when it is copied into the file.
  static constexpr size_t chunk = 256 << 10;
  /// Bytes after which the disk begins to write: meanwhile the next checksums are computed.
  static constexpr uint64_t share = 8 << 20;

  void flush() {
    write(buffer);
    buffer.clear();
  }
  void write(std::span<const std::byte> bytes) {
    checksum.add(bytes);
    writer.writeData(at, bytes);
    at += bytes.size();
    if (at / share != (at - bytes.size()) / share)
      writer.startSync(at);
  }

  SafetensorsWriter &writer;
  Checksum checksum;
  std::vector<std::byte> buffer;
  uint64_t at = 0;
};

/// Writes this rank's rectangles, dense.
SavedFile writeRankFile(Session &session, const std::string &path, Facts facts) {
  std::vector<ArrayHeader> headers;
  std::vector<const Tensor *> tensors;
  for (const Tensor &tensor : session.manifest().tensors)
    if (const format::Rectangle *part = isSaved(tensor) ? ownedPart(tensor, session.rank()) : nullptr) {
      headers.push_back({tensor.name, tensor.type, part->size});
      tensors.push_back(&tensor);
    }
  facts["checksum"] = noChecksum;
  SafetensorsWriter writer(path, headers, true, facts);
  RankFileData data(writer);
  for (const Tensor *tensor : tensors) {
    const format::Rectangle *part = ownedPart(*tensor, session.rank());
    auto local = session.tensor(tensor->name);
    uint64_t elementBytes = format::sizeOf(tensor->type);
    std::vector<int64_t> origin(part->size.size(), 0);
    forEachRun(part->size, origin, tensor->layout.local, origin, part->size, [&](int64_t, int64_t from, int64_t n) {
      data.add(local.subspan(static_cast<uint64_t>(from) * elementBytes, static_cast<uint64_t>(n) * elementBytes));
    });
  }
  writer.amendHeader(noChecksum, data.finish());
  writer.sync();
  return {writer.totalBytes(), checksumOf(writer.headerBytes())};
}

SaveIndex indexOf(const format::Manifest &manifest, const std::string &run, uint64_t serial,
                  const RunPosition &position) {
  SaveIndex index;
  index.run = run;
  index.serial = serial;
  index.plan = manifest.planHash;
  index.position = position;
  for (const Tensor &tensor : manifest.tensors) {
    if (!isSaved(tensor))
      continue;
    SavedTensor entry{tensor.type, tensor.layout.shape, tensor.stored, {}, tensor.aliases};
    for (const format::Rectangle &part : tensor.layout.parts)
      if (!part.ranks.empty() && elementCount(part.size) > 0)
        entry.parts.push_back({rankFile(part.ranks.front()), part.start, part.size});
    index.tensors.emplace_back(tensor.name, std::move(entry));
  }
  return index;
}

/// The index of a save whose other files are there; all of it is on the disk then.
void writeIndexFile(const std::string &part, const SaveIndex &index) {
  std::string path = part + "/index.json", text = writeIndex(index);
  FileWriter file(path, true);
  file.write(0, std::as_bytes(std::span(text)));
  file.sync();
  syncFolder(part);
}

} // namespace

CheckpointWriter::CheckpointWriter(Session &session, SaveFolder *owner, std::string folder, uint64_t keep)
    : session(session), owner(owner), folder(std::move(folder)), keep(keep) {}

std::string CheckpointWriter::save(const RunPosition &position) {
  comm::Control &control = session.jobControl();
  if (run.empty())
    run = control.broadcast("run", owner ? owner->run() : "");
  std::string whole = folder + "/" + std::to_string(position.step), part = whole + "." + run + ".tmp";
  if (control.rank() == 0) {
    std::error_code error;
    fs::create_directories(part, error);
    if (error)
      throw Failure::at(folder, Message::cannotWrite, error.message());
  }
  control.barrier("save");
  writeAll(position, part);
  if (control.rank() == 0) {
    owner->add(part, position.step, keep);
    control.saved(whole);
  }
  control.barrier("save done");
  return whole;
}

void CheckpointWriter::writeAll(const RunPosition &position, const std::string &part) {
  comm::Control &control = session.jobControl();
  const format::Manifest &manifest = session.manifest();
  Facts facts = factsOf(manifest.planHash, run, position.step, control.rank(), control.world());
  SavedFile file;
  std::error_code ignored;
  try {
    file = writeRankFile(session, part + "/" + rankFile(control.rank()), facts);
  } catch (const Failure &) {
    fs::remove(part + "/" + rankFile(control.rank()), ignored); // half of it is in the way where the disk is full
    throw;
  }
  auto files = control.gather("saved", std::to_string(file.bytes) + " " + file.header);
  if (control.rank() != 0)
    return;
  SaveIndex index = indexOf(manifest, run, owner->nextSerial(), position);
  for (const std::string &text : files)
    index.files.push_back({std::stoull(text), text.substr(text.find(' ') + 1)});
  try {
    writeIndexFile(part, index);
  } catch (const Failure &) {
    fs::remove_all(part, ignored); // all ranks have written theirs
    throw;
  }
}

bool isCheckpoint(const std::string &path) {
  std::error_code error;
  std::string index = path + "/index.json";
  if (auto there = format::isThere(index); !there)
    throw Failure::at(index, Message::cannotOpen, there.message());
  return fs::is_regular_file(index, error);
}

std::optional<std::string> findNewestCheckpoint(const std::string &folder) {
  auto saves = listSaves(folder);
  return saves.empty() ? std::nullopt : std::optional(folder + "/" + saves.back().name);
}

std::string newestCheckpoint(const std::string &folder) {
  std::optional<std::string> newest = findNewestCheckpoint(folder);
  if (!newest)
    throw Failure::at(folder, Message::noCheckpoint).continued(otherComplete(folder));
  return *newest;
}

namespace {

/// Opens the files of a save and compares their headers with its index.
class SaveReader {
public:
  SaveReader(const std::string &path, const SaveIndex &index) : path(path), index(index) {}

  Checkpoint read();

private:
  struct RankFile {
    std::shared_ptr<SafetensorsReader> reader;
    std::shared_ptr<const SavedData> data; ///< null in format 1
  };
  RankFile openRankFile(size_t rank) const;
  void checkFacts(const SafetensorsReader &reader, size_t rank) const;
  StoredArray storedArray(const std::string &name, const SavedTensor &tensor) const;

  const std::string &path;
  const SaveIndex &index;
  std::map<std::string, RankFile> files;
};

} // namespace

void SaveReader::checkFacts(const SafetensorsReader &reader, size_t rank) const {
  std::string name = rankFile(rank);
  Facts facts = factsOf(index.plan, index.run, index.position.step, rank, index.files.size());
  // The step first: it says most about mixed-up files.
  for (const char *key : {"step", "run", "rank", "ranks", "plan", "par_checkpoint"}) {
    auto said = reader.metadata().find(key);
    if (said == reader.metadata().end() || said->second != facts[key])
      throw Failure::at(path, Message::checkpointOther, name, key,
                        said == reader.metadata().end() ? "not said" : said->second, facts[key]);
  }
  if (checksumOf(reader.headerBytes()) != index.files[rank].header)
    throw Failure::at(path, Message::checkpointDamaged, "the header of " + name, "");
}

SaveReader::RankFile SaveReader::openRankFile(size_t rank) const {
  std::string name = rankFile(rank), file = path + "/" + name;
  std::error_code error;
  auto there = format::isThere(file);
  if (!there)
    throw Failure::at(file, Message::cannotOpen, there.message());
  if (!*there)
    throw Failure::at(path, Message::checkpointMissing, name);
  uint64_t bytes = fs::file_size(file, error);
  if (!error && bytes != index.files[rank].bytes)
    throw Failure::at(path, Message::checkpointSize, name, grouped(bytes), grouped(index.files[rank].bytes));
  RankFile opened{std::make_shared<SafetensorsReader>(file), nullptr};
  if (index.format > 1) {
    checkFacts(*opened.reader, rank);
    auto checksum = opened.reader->metadata().find("checksum");
    opened.data = std::make_shared<SavedData>(
        opened.reader, path, checksum == opened.reader->metadata().end() ? "" : checksum->second, otherComplete);
  }
  return opened;
}

StoredArray SaveReader::storedArray(const std::string &name, const SavedTensor &tensor) const {
  StoredArray array{tensor.type, tensor.shape, {}, path + "/index.json", tensor.stored};
  for (const SavedPart &part : tensor.parts) {
    const RankFile &file = files.at(part.file);
    const ArrayView *view = file.reader->find(name);
    if (!view || view->shape != part.size || view->type != tensor.type)
      throw Failure::at(path, Message::checkpointArray, part.file, name,
                        view ? describeArray(view->type, view->shape) : "nothing",
                        describeArray(tensor.type, part.size));
    array.pieces.push_back({part.start, part.size, view->data.data(), file.data});
  }
  return array;
}

Checkpoint SaveReader::read() {
  Checkpoint checkpoint;
  checkpoint.position = index.position;
  checkpoint.run = index.run;
  checkpoint.store.place = path;
  for (size_t rank = 0; rank < index.files.size(); ++rank) {
    RankFile file = openRankFile(rank);
    checkpoint.store.readers.push_back(file.reader);
    if (file.data)
      checkpoint.store.saved.push_back(file.data);
    files.emplace(rankFile(rank), std::move(file));
  }
  for (const auto &[name, tensor] : index.tensors)
    checkpoint.store.arrays[name] = storedArray(name, tensor);
  for (const auto &[name, tensor] : index.tensors)
    for (const std::string &other : tensor.also)
      checkpoint.store.arrays.try_emplace(other, checkpoint.store.arrays.at(name));
  if (index.format == 1)
    checkpoint.remark = path +
                        ": warning: was written by an earlier par-run, without checksums: shapes and sizes of its "
                        "files are compared, what they hold is not";
  return checkpoint;
}

/// "ckpt/2" of "ckpt/2/".
static fs::path withoutSlash(const fs::path &path) { return path.has_filename() ? path : path.parent_path(); }

static Checkpoint openAlone(const std::string &path) {
  if (!isCheckpoint(path))
    throw Failure::at(path, Message::noCheckpoint);
  SaveIndex index = readIndex(path);
  auto step = stepOfName(withoutSlash(path).filename().string());
  if (step && *step != index.position.step)
    throw Failure::at(path, Message::checkpointFolder, index.position.step);
  return SaveReader(path, index).read();
}

Checkpoint openCheckpoint(const std::string &path) {
  try {
    return openAlone(path);
  } catch (Failure &failure) {
    throw std::move(failure).continued(otherComplete(path));
  }
}

bool Checkpoint::intact() const {
  for (const auto &[name, array] : store.arrays)
    for (const Piece &piece : array.pieces)
      if (!piece.saved || !piece.saved->intact()) // one of format 1 has no checksums
        return false;
  return true;
}

std::string otherComplete(const std::string &path) {
  fs::path own = withoutSlash(path), folder = own.parent_path();
  std::vector<ListedSave> saves;
  try {
    saves = listSaves(folder.empty() ? "." : folder.string());
  } catch (const Failure &) {
    // a folder that cannot be read: the error of `path` is reported already
  }
  for (size_t i = saves.size(); i-- > 0;) {
    std::string other = (folder / saves[i].name).string();
    if (other == own || !saves[i].serial)
      continue;
    try {
      if (openAlone(other).intact())
        return "; " + other + " is complete: --resume " + other;
    } catch (const Failure &) {
      // nor is this one
    }
  }
  return "";
}

} // namespace par::core
