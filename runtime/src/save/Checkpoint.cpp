// Opens saves: every file's facts are compared with the index.
#include "par/save/Checkpoint.h"

#include "RankFile.h"

#include "par/files/Checksum.h"
#include "par/messages/Failure.h"

#include <filesystem>

namespace par::core {

namespace fs = std::filesystem;

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
