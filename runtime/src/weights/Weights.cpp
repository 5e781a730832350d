// Opens the sources of tensors (model file, safetensors, saves), checks that they hold the bundle's tensors with their
// shapes and types, and reads each rank's rectangles with conversion.
#include "par/weights/Weights.h"

#include "ContentCheck.h"
#include "format/Json.h"
#include "par/files/Checksum.h"
#include "par/files/Convert.h"
#include "par/files/Rectangles.h"
#include "par/format/DataFile.h"
#include "par/format/Family.h"
#include "par/format/Sha256.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace par::core {

namespace fs = std::filesystem;
using format::Tensor;
using format::TensorKind;

const StoredArray *WeightStore::find(const std::string &name) const {
  auto found = arrays.find(name);
  return found == arrays.end() ? nullptr : &found->second;
}

std::string WeightStore::fileOf(const StoredArray &array) const {
  const std::byte *at = array.pieces.empty() ? nullptr : array.pieces.front().data;
  auto holds = [&](std::span<const std::byte> bytes) { return at >= bytes.data() && at < bytes.data() + bytes.size(); };
  for (const auto &reader : readers)
    if (holds(reader->bytes()))
      return reader->path();
  for (const auto &file : foreign)
    if (holds(file->bytes()))
      return file->path();
  for (const auto &file : files)
    if (holds(file->bytes()))
      return file->path();
  return array.file.empty() ? place : array.file;
}

void WeightStore::release() const {
  auto release = [](const auto &files) {
    for (const auto &file : files) {
      file->checkWhole();
      file->drop();
    }
  };
  release(readers);
  release(foreign);
  release(files);
}

namespace {

/// A Hugging Face index.json: the file beside it that holds each tensor.
std::map<std::string, std::string> readShards(const std::string &path) {
  std::map<std::string, std::string> fileOf;
  std::string text = readTextFile(path);
  if (auto status = format::checkNoZero(text); !status)
    throw Failure::at(path, Message::badIndex, status.message());
  try {
    // The document lives as long as the loop reads it.
    const auto index = nlohmann::json::parse(text);
    for (const auto &[name, file] : index.at("weight_map").items()) {
      fs::path part = file.get<std::string>();
      if (part.empty() || part != part.filename())
        throw Failure::at(path, Message::indexLeaves, name, part.string());
      fs::path beside = fs::path(path).parent_path() / part;
      if (std::error_code error; fs::status(beside, error).type() == fs::file_type::not_found)
        throw Failure::at(path, Message::indexMissing, name, beside.string());
      fileOf[name] = beside.string();
    }
  } catch (const nlohmann::json::exception &error) {
    throw Failure::at(path, Message::badIndex, error.what());
  }
  return fileOf;
}

Piece wholePiece(const std::vector<int64_t> &shape, const std::byte *data) {
  return {std::vector<int64_t>(shape.size(), 0), shape, data};
}

} // namespace

/// Adds the arrays of a file; none may be there already.
static void addFile(WeightStore &store, const std::string &path) {
  auto file = std::make_shared<ArrayFile>(path);
  for (const auto &[name, array] : file->arrays()) {
    StoredArray stored{array.type, array.shape, {wholePiece(array.shape, array.data.data())}, path};
    if (auto [before, isNew] = store.arrays.try_emplace(name, std::move(stored)); !isNew)
      throw Failure::at(path, Message::tensorTwice, name, store.fileOf(before->second));
  }
  store.foreign.push_back(std::move(file));
}

WeightStore openSafetensors(const std::vector<std::string> &paths) {
  WeightStore store;
  for (const std::string &path : paths) {
    store.place += (store.place.empty() ? "" : ", ") + path;
    if (fs::path(path).extension() != ".json") {
      addFile(store, path);
      continue;
    }
    const std::map<std::string, std::string> index = readShards(path);
    std::set<std::string> files;
    for (const auto &[name, file] : index)
      if (files.insert(file).second)
        addFile(store, file);
    for (const auto &[name, file] : index)
      if (const StoredArray *array = store.find(name); !array || store.fileOf(*array) != file)
        throw Failure::at(path, Message::indexWrong, name, file);
  }
  return store;
}

namespace {

/// The compiled model file as it was named, or by its last name beside the bundle; empty if it is in neither
/// place. Throws Failure where it is in neither, and one cannot be looked at.
fs::path findModel(const format::ModelFile &model, const std::string &bundle) {
  std::optional<Failure> unseen;
  fs::path folder = format::mainFolderOf(fs::absolute(bundle).string());
  for (const fs::path &path : {fs::path(model.name), folder.parent_path() / fs::path(model.name).filename()}) {
    std::error_code error;
    if (fs::is_regular_file(path, error))
      return path;
    if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory && !unseen)
      unseen = Failure::at(path.string(), Message::cannotOpen, error.message());
  }
  if (unseen)
    throw *unseen;
  return {};
}

void checkContent(const format::ModelFile &model, const MappedFile &file, const std::string &bundle, Message changed) {
  auto bytes = file.bytes();
  if (format::sha256({reinterpret_cast<const char *>(bytes.data()), bytes.size()}) != model.sha256)
    throw Failure::at(bundle, changed, file.path(), "other content");
}

/// The compiled model file, or one of its size.
std::shared_ptr<MappedFile> openCompiledModel(const format::ModelFile &model, const std::string &bundle,
                                              Message missing, Message changed) {
  fs::path path = findModel(model, bundle);
  if (path.empty())
    throw Failure::at(bundle, missing, model.name);
  auto file = std::make_shared<MappedFile>(path.string());
  if (uint64_t size = file->bytes().size(); size != model.size)
    throw Failure::at(bundle, changed, path.string(), grouped(size) + " bytes, not " + grouped(model.size));
  return file;
}

} // namespace

std::string findCompiledModel(const format::Manifest &manifest, const std::string &bundle, Message missing,
                              Message changed) {
  auto file = openCompiledModel(manifest.model, bundle, missing, changed);
  checkContent(manifest.model, *file, bundle, changed);
  return file->path();
}

void WeightStore::loadChecked(const std::function<void()> &load) const {
  if (!content)
    return load();
  content->start();
  try {
    load();
  } catch (...) {
    content->finish();
    throw;
  }
  content->finish();
}

fs::path besideModel(const fs::path &model, const std::string &file) {
  std::error_code failure;
  fs::path named = fs::absolute(model), target = fs::canonical(named, failure);
  for (const fs::path &folder : {named.parent_path(), target.parent_path()}) {
    if (folder.empty() || !fs::exists(folder / file, failure))
      continue;
    fs::path real = fs::canonical(folder / file, failure), root = fs::canonical(folder, failure);
    if (std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end())
      throw Failure::at((folder / file).string(), Message::dataLeaves, file, model.string());
    return folder == named.parent_path() ? model.parent_path() / file : folder / file;
  }
  return model.parent_path() / file;
}

std::vector<std::string> filesOfModel(const format::Manifest &manifest, const std::string &bundle) {
  fs::path model = findModel(manifest.model, bundle);
  if (model.empty())
    return {};
  std::set<std::string> files = {model.string()};
  for (const Tensor &tensor : manifest.tensors)
    if (tensor.source && tensor.source->file != model.filename())
      files.insert(besideModel(model, tensor.source->file).string());
  for (const format::File &noted : manifest.data)
    files.insert(besideModel(model, noted.name).string());
  return {files.begin(), files.end()};
}

WeightStore openConstants(const format::Manifest &manifest, const std::string &bundle) {
  WeightStore store;
  store.place = (fs::path(bundle) / format::constantsFile).string();
  std::shared_ptr<MappedFile> file;
  for (const Tensor &tensor : manifest.tensors) {
    if (!tensor.value)
      continue;
    if (!file)
      store.files.push_back(file = std::make_shared<MappedFile>(store.place));
    uint64_t needed = static_cast<uint64_t>(elementCount(tensor.stored)) * format::sizeOf(tensor.type);
    if (*tensor.value > file->bytes().size() || needed > file->bytes().size() - *tensor.value)
      throw Failure::at(store.place, Message::badOffsets, tensor.name, *tensor.value, *tensor.value + needed,
                        file->bytes().size(), needed);
    store.arrays[tensor.name] = {
        tensor.type, tensor.stored, {wholePiece(tensor.stored, file->bytes().data() + *tensor.value)}};
  }
  return store;
}

void checkCompiledData(const format::Manifest &manifest, const std::string &blamed, const std::string &model,
                       Message changed) {
  for (const format::File &noted : manifest.data) {
    fs::path path = besideModel(model, noted.name);
    std::error_code failure;
    if (!fs::exists(path, failure))
      continue; // its reader reports that
    auto file = format::PlainFile::open(path.string());
    if (!file)
      throw Failure::at(path.string(), Message::cannotOpen, file.message());
    auto refuse = [&](const std::string &difference) {
      throw Failure::at(blamed, changed, path.string(), model, difference);
    };
    if (file->size() != noted.size)
      refuse(grouped(file->size()) + " bytes, not " + grouped(noted.size));
    auto hash = format::hashDataFile(*file);
    if (!hash)
      throw Failure(path.string(), hash.message());
    if (*hash != noted.sha256)
      refuse("other content");
  }
}

/// Exporters and par-compile know compressed models by their names too.
static bool isCompressed(const std::string &model) { return model.ends_with(".gz"); }

WeightStore openModelFile(const format::Manifest &manifest, const std::string &bundle, bool checkData,
                          ModelComparison comparison) {
  WeightStore store;
  if (std::none_of(manifest.tensors.begin(), manifest.tensors.end(), isWeight))
    return store;                                   // a model that is only data
  if (format::lists(manifest, format::weightsFile)) // whose hash was compared with the bundle
    return openSafetensors({(fs::path(bundle) / format::weightsFile).string()});
  bool any = std::any_of(manifest.tensors.begin(), manifest.tensors.end(),
                         [](const Tensor &tensor) { return isWeight(tensor) && (tensor.source || tensor.value); });
  if (!any)
    throw Failure::at(bundle, isCompressed(manifest.model.name) ? Message::weightsCompressed : Message::noWeights,
                      manifest.model.name);
  auto file = openCompiledModel(manifest.model, bundle, Message::modelMissing, Message::modelChanged);
  auto compare = [of = manifest.model, file, bundle] { checkContent(of, *file, bundle, Message::modelChanged); };
  if (comparison == ModelComparison::First)
    compare();
  else
    store.content = std::make_shared<ContentCheck>(compare);
  fs::path model = file->path();
  store.place = model.string();
  if (checkData)
    checkCompiledData(manifest, bundle, model.string(), Message::dataChanged);
  std::map<std::string, std::shared_ptr<MappedFile>> open = {{model.string(), file}};
  for (const Tensor &tensor : manifest.tensors) {
    if (!tensor.source || tensor.kind == TensorKind::Copy)
      continue;
    bool own = model.filename() == tensor.source->file;
    fs::path path = own ? model : besideModel(model, tensor.source->file);
    auto &source = open[path.string()];
    auto there = format::isThere(path.string());
    if (!source && !own && there && !*there) // of one that cannot be seen, opening it says why
      throw Failure::at(bundle, Message::dataMissing, path.string(), model.string(), tensor.name);
    if (!source)
      source = std::make_shared<MappedFile>(path.string());
    uint64_t offset = tensor.source->offset, length = tensor.source->length;
    uint64_t needed = static_cast<uint64_t>(elementCount(tensor.stored)) * format::sizeOf(tensor.source->type);
    bool isInside = offset <= source->bytes().size() && length <= source->bytes().size() - offset;
    if ((!isInside || length != needed) && store.content)
      store.content->finish(); // another file is the reason
    if (!isInside || length != needed)
      throw Failure::at(path.string(), Message::badOffsets, tensor.name, offset, offset + length,
                        source->bytes().size(), needed);
    store.arrays[tensor.name] = {
        tensor.source->type, tensor.stored, {wholePiece(tensor.stored, source->bytes().data() + offset)}};
  }
  for (auto &[path, source] : open)
    store.files.push_back(source);
  // Values that the model holds as text are in the bundle.
  WeightStore own = openConstants(manifest, bundle);
  store.arrays.merge(own.arrays);
  std::move(own.files.begin(), own.files.end(), std::back_inserter(store.files));
  return store;
}

bool isWeight(const Tensor &tensor) {
  return tensor.kind == TensorKind::Parameter || tensor.kind == TensorKind::Frozen ||
         tensor.kind == TensorKind::Buffer || tensor.kind == TensorKind::Copy;
}

bool isSaved(const Tensor &tensor) { return tensor.kind != TensorKind::Copy && tensor.kind != TensorKind::Constant; }

const format::Rectangle *ownedPart(const Tensor &tensor, uint32_t rank) {
  for (const format::Rectangle &part : tensor.layout.parts)
    if (!part.ranks.empty() && part.ranks.front() == rank && elementCount(part.size) > 0)
      return &part;
  return nullptr;
}

const Tensor &sourceOf(const format::Manifest &manifest, const Tensor &tensor) {
  const Tensor *original = tensor.kind == TensorKind::Copy ? manifest.findTensor(tensor.of) : nullptr;
  return original ? *original : tensor;
}

namespace {

/// A buffer that no file needs to hold: the compiler made it, its rule says the value.
bool optionalWeight(const Tensor &tensor) { return tensor.kind == TensorKind::Buffer && !tensor.source; }

bool sameShape(const Tensor &tensor, const StoredArray &array) {
  if (array.stored)
    return *array.stored == tensor.stored;
  return array.shape == tensor.stored || array.shape == tensor.layout.shape;
}

[[noreturn]] void refuseArray(const Tensor &tensor, const StoredArray &array, const std::string &file,
                              size_t matching) {
  const std::vector<int64_t> &shape = array.stored ? *array.stored : array.shape;
  if (!sameShape(tensor, array))
    throw Failure::at(
        file, Message::wrongShape, tensor.name, describeShape(shape), describeShape(tensor.stored), matching,
        array.stored
            ? ""
            : "; to start it from new values (a head of other classes), leave it out of the file and say --init");
  throw Failure::at(file, Message::wrongType, tensor.name, describeArray(array.type, shape),
                    describeArray(tensor.type, tensor.stored));
}

/// The number of required tensors, and how many of them a store has.
struct StoreCheck {
  size_t total = 0, present = 0;
  const Tensor *missing = nullptr; ///< the first
};

/// Each tensor that `wanted` picks and that is in the store has its shape and type, and is the same under each of its
/// names.
StoreCheck checkPresent(const format::Manifest &manifest, const WeightStore &store, bool (*wanted)(const Tensor &)) {
  checkNames(manifest, store);
  StoreCheck found;
  auto &[total, present, missing] = found;
  size_t matching = 0;
  const Tensor *wrong = nullptr;
  for (const Tensor &tensor : manifest.tensors) {
    const StoredArray *array = store.find(tensor);
    if (store.anew.count(tensor.name))
      continue;
    if (tensor.kind == TensorKind::Copy || (!wanted(tensor) && !(array && isWeight(tensor))))
      continue;
    ++total;
    present += array != nullptr;
    bool fits = array && sameShape(tensor, *array) && isConvertible(array->type, tensor.type);
    matching += fits;
    if (!array && !missing)
      missing = &tensor;
    if (array && !fits && !wrong)
      wrong = &tensor;
  }
  if (wrong) {
    const StoredArray &array = *store.find(*wrong);
    refuseArray(*wrong, array, array.file.empty() ? store.fileOf(array) : array.file, matching);
  }
  return found;
}

/// All that `wanted` picks is there, too.
void checkStore(const format::Manifest &manifest, const WeightStore &store, bool (*wanted)(const Tensor &)) {
  auto [total, present, missing] = checkPresent(manifest, store, wanted);
  if (!missing)
    return;
  Failure failure = Failure::at(store.place, Message::missingTensor, missing->name, present, total);
  if (std::string hint = present == 0 ? hintAtPrefix(manifest, store) : ""; !hint.empty())
    throw std::move(failure).note(hint);
  if (missing->kind != TensorKind::State && (present == 0 || missing->kind != TensorKind::Parameter))
    throw failure;
  if (missing->kind != TensorKind::State)
    throw std::move(failure).note("--init beside --weights begins what is not there by the rules of train.init");
  throw std::move(failure).note("it is of another optimizer: --weights " + store.place +
                                " takes its weights and starts new states");
}

} // namespace

/// Whether files of weights must hold the tensor.
static bool neededWeight(const Tensor &tensor) { return isWeight(tensor) && !optionalWeight(tensor); }

void checkWeights(const format::Manifest &manifest, const WeightStore &store) {
  checkStore(manifest, store, neededWeight);
}

std::string checkSomeWeights(const format::Manifest &manifest, const WeightStore &store) {
  auto [total, present, missing] = checkPresent(manifest, store, neededWeight);
  if (present == 0)
    checkStore(manifest, store, neededWeight);
  if (!missing)
    return "";
  return core::format("{}: note: {} of {} weights begin by their rules, as it does not hold them (\"{}\")", store.place,
                      total - present, total, missing->name);
}

std::string describeConverted(const format::Manifest &manifest, const WeightStore &store) {
  std::map<std::pair<format::DType, format::DType>, std::pair<size_t, std::string>> kinds; // how many, and the first
  for (const Tensor &tensor : manifest.tensors)
    if (const StoredArray *array = isWeight(tensor) && tensor.kind != TensorKind::Copy ? store.find(tensor) : nullptr;
        array && array->type != tensor.type) {
      auto &[count, first] = kinds[{array->type, tensor.type}];
      first = count++ ? first : tensor.name;
    }
  std::string text;
  for (const auto &[types, found] : kinds) {
    auto [from, to] = types;
    text += core::format(
        "{}\"{}\"{} {} there and {} in the bundle: {}", text.empty() ? "" : "; ", format::printable(found.second),
        found.first > 1 ? core::format(" and {} more are", found.first - 1) : " is", format::toString(from),
        format::toString(to), widens(from, to) ? "converted exactly" : "rounded");
  }
  return text.empty() ? "" : store.place + ": note: " + text;
}

std::string describeUnused(const format::Manifest &manifest, const WeightStore &store) {
  std::set<std::string> known; // under every name that one may have
  for (const Tensor &tensor : manifest.tensors) {
    known.insert(tensor.name);
    known.insert(tensor.aliases.begin(), tensor.aliases.end());
    known.insert(tensor.transposed.begin(), tensor.transposed.end());
  }
  size_t count = 0;
  std::string first;
  for (const auto &[name, array] : store.arrays)
    if (!known.count(name) && count++ == 0)
      first = name;
  if (count == 0)
    return "";
  return core::format("{}: note: \"{}\"{} {} no weight of the bundle and {} not used", store.place,
                      format::printable(first), count > 1 ? core::format(" and {} more", count - 1) : "",
                      count > 1 ? "are" : "is", count > 1 ? "are" : "is");
}

void checkState(const format::Manifest &manifest, const WeightStore &store) { checkStore(manifest, store, isSaved); }

bool SavedData::intact() const {
  std::call_once(once, [this] { good = checksumOf(file->dataBytes()) == checksum; });
  return good;
}

void WeightStore::checkSaved(uint32_t rank, uint32_t ranks) const {
  for (size_t file = rank; file < saved.size(); file += ranks)
    saved[file]->check();
}

void SavedData::check() const {
  if (!intact())
    throw Failure::at(save, Message::checkpointDamaged, fs::path(file->path()).filename().string(), advise(save));
}

/// Elements of a piece from `first` on, which lie side by side in both; floats of another type are converted.
static void loadRun(std::byte *to, const Tensor &tensor, const StoredArray &from, const Piece &piece, int64_t first,
                    int64_t count, const std::string &place) {
  const std::byte *values = piece.data + static_cast<uint64_t>(first) * format::sizeOf(from.type);
  int64_t bad = convertElements(to, tensor.type, values, from.type, count);
  if (bad < count)
    throw Failure::at(place, Message::weightRange, tensor.name, floatAt(from.type, values, static_cast<uint64_t>(bad)),
                      format::toString(tensor.type));
}

void loadTensor(std::byte *to, const Tensor &tensor, uint32_t rank, const StoredArray &from, const std::string &place) {
  const format::Layout &layout = tensor.layout;
  uint64_t elementBytes = format::sizeOf(tensor.type);
  const format::Rectangle *part = format::rectangleOf(layout, rank);
  if (!part || part->size != layout.local) // elements that no array has
    std::memset(to, 0, static_cast<uint64_t>(elementCount(layout.local)) * elementBytes);
  if (!part)
    return;
  if (!isConvertible(from.type, tensor.type) || elementCount(from.shape) != elementCount(layout.shape))
    refuseArray(tensor, from, place, 0);
  // An array of another shape has the same elements in the same order, once it is whole.
  std::vector<std::byte> assembled;
  std::vector<Piece> reshaped;
  if (from.pieces.size() == 1 && from.pieces[0].size == from.shape) {
    reshaped = {wholePiece(layout.shape, from.pieces[0].data)};
    reshaped[0].saved = from.pieces[0].saved;
  } else if (from.shape != layout.shape) {
    assembled = assemble(from);
    reshaped = {wholePiece(layout.shape, assembled.data())};
  }
  int64_t loaded = 0;
  for (const Piece &piece : reshaped.empty() ? from.pieces : reshaped) {
    std::vector<int64_t> start, size;
    if (!intersect(part->start, part->size, piece.start, piece.size, start, size))
      continue;
    piece.check();
    std::vector<int64_t> toStart(start), fromStart(start);
    for (size_t d = 0; d < start.size(); ++d) {
      toStart[d] -= part->start[d];
      fromStart[d] -= piece.start[d];
    }
    forEachRun(layout.local, toStart, piece.size, fromStart, size, [&](int64_t toAt, int64_t fromAt, int64_t n) {
      loadRun(to + static_cast<uint64_t>(toAt) * elementBytes, tensor, from, piece, fromAt, n, place);
    });
    loaded += elementCount(size);
  }
  int64_t wanted = elementCount(part->size);
  if (loaded != wanted)
    throw Failure::at(place, Message::checkpointCover, tensor.name, wanted - loaded, wanted, rank);
}

} // namespace par::core
