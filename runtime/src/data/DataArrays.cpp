// Samples from arrays of files.
#include "par/data/Data.h"
#include "par/data/Elements.h"
#include "par/data/InputChecks.h"
#include "par/messages/Failure.h"

#include <cstring>
#include <set>

namespace par::core {
namespace {

using format::Input;

/// One shard of an input's rows, or all of an input that has none.
struct Shard {
  const ArrayView *array = nullptr;
  uint64_t firstRow = 0;
  std::string place, name;
  std::vector<std::byte> whole = {}; ///< of an input without rows whose file has another type
};

/// Input -> array.
using Renamings = std::map<std::string, std::string>;

std::string listNames(const ArrayFile &file) {
  NameList names;
  for (const auto &[name, array] : file.arrays())
    names.add(name);
  return names.str();
}

std::string listInputs(const format::Manifest &manifest) {
  NameList names;
  for (const Input &input : manifest.inputs)
    names.add(input.name);
  return names.str();
}

[[noreturn]] void refuseType(const Input &input, const ArrayView &array, const std::string &path,
                             const std::string &name, bool isPixels) {
  auto failure = Failure::at(path, Message::arrayType, name, describeArray(array.type, array.shape), input.name,
                             isPixels ? "pixels, which are u8" : format::toString(input.type),
                             isPixels ? "" : describeRange(input));
  if (array.type == DType::U8 && isFloat(input.type))
    throw std::move(failure).note(core::format(textOf(Message::pixelsNeedFlag), input.name, input.name));
  throw failure;
}

void checkPixels(const format::Manifest &manifest, const std::string &name, const Pixels &mean) {
  const Input *input = manifest.findInput(name);
  if (!input)
    throw Failure::at("par-run", Message::renamesNothing, "--normalize", name, listInputs(manifest))
        .exitsWith(exitUsage);
  size_t channels = mean.mean.size();
  bool fits = isFloat(input->type) && input->microbatched &&
              (channels == 1 || (input->shape.size() > 1 && static_cast<uint64_t>(input->shape[1]) == channels));
  if (!fits)
    throw Failure::at("par-run", Message::pixelsUnlike, name, describeArray(input->type, input->shape), channels)
        .exitsWith(exitUsage);
}

Renamings readRenamings(const std::string &spec, const std::string &text, const format::Manifest &manifest) {
  Renamings renamed;
  for (size_t at = 0; at != std::string::npos && at < text.size();) {
    size_t end = text.find(',', at + 1);
    std::string pair = text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    size_t equals = pair.find('=');
    if (equals == std::string::npos)
      throw Failure::at("par-run", Message::flagBad, "--data", "F or F:input=array,...", spec).exitsWith(exitUsage);
    std::string input = pair.substr(0, equals);
    if (!manifest.findInput(input))
      throw Failure::at("par-run", Message::renamesNothing, spec, input, listInputs(manifest)).exitsWith(exitUsage);
    renamed[input] = pair.substr(equals + 1);
    at = end;
  }
  return renamed;
}

std::string describeElement(DType type, const std::byte *data, uint64_t at) {
  if (isFloat(type))
    return core::format("{}", floatAt(type, data, at));
  int64_t value = integerAt(type, data, at);
  return type == DType::U64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

class ArrayDataset : public Dataset {
public:
  ArrayDataset(const ArrayFeed &feed, const format::Manifest &manifest) : pixels(feed.pixels) {
    for (const auto &[name, mean] : pixels)
      checkPixels(manifest, name, mean);
    for (const std::string &spec : feed.data)
      addFile(spec, manifest);
    for (const std::string &spec : feed.inputs)
      addInput(readInputSpec(spec), manifest);
    checkRows();
  }

  uint64_t rows() const override { return counts.empty() ? 0 : counts.begin()->second; }
  bool has(const std::string &input) const override { return shards.count(input) > 0; }
  std::string describe() const override { return place() + ": " + grouped(rows()) + " rows"; }
  std::string feeds() const override {
    NameList names;
    for (const auto &[name, parts] : shards)
      names.add("\"" + name + "\"");
    std::string text = "--data " + place() + " feeds " + (names.empty() ? "nothing" : names.str());
    return others.empty() ? text : text + "; arrays of other names: " + others.str() + ", which F:input=array renames";
  }
  std::string place() const override { return paths.str(); }

  std::string unused() const override { return others.str(); }
  std::string rounded() const override { return roundings.str(); }

  const std::byte *row(const Input &input, uint64_t row, std::vector<std::byte> &scratch) const override {
    const auto &parts = shards.at(input.name);
    size_t part = parts.size() - 1;
    while (parts[part].firstRow > row)
      --part;
    const Shard &shard = parts[part];
    uint64_t elements = elementCount(input.shape) / std::max<int64_t>(1, input.shape[0]);
    uint64_t local = row - shard.firstRow, fileBytes = elements * format::sizeOf(shard.array->type);
    const std::byte *data = shard.array->data.data() + local * fileBytes;
    data = converted(input, shard, data, local, elements, scratch);
    checkRange(input, {shard.place, shard.name, local}, data, elements);
    return data;
  }

  const std::byte *whole(const Input &input) const override { return dataOf(shards.at(input.name).front()); }
  void checkWhole() const override {
    for (const auto &file : files)
      file->checkWhole();
  }

private:
  /// "F" or "F:input=array,input=array".
  void addFile(const std::string &spec, const format::Manifest &manifest) {
    auto [path, text] = readDataSpec(spec);
    if (!isArrayFile(path))
      throw Failure::at(path, Message::unknownData);
    const Renamings renamed = readRenamings(spec, text, manifest);
    auto file = std::make_shared<ArrayFile>(path);
    paths.add(path);
    std::set<std::string> taken;
    std::optional<std::pair<std::string, uint64_t>> first;
    for (const Input &input : manifest.inputs) {
      auto alias = renamed.find(input.name);
      const std::string &name = alias == renamed.end() ? input.name : alias->second;
      const ArrayView *array = file->find(name);
      if (!array && alias != renamed.end())
        throw Failure::at(path, Message::arrayMissing, name, listNames(*file));
      if (!array)
        continue;
      taken.insert(name);
      addArray(input, *array, path, name);
      if (!input.microbatched)
        continue;
      auto rows = static_cast<uint64_t>(array->shape[0]);
      if (first && rows != first->second)
        throw Failure::at(path, Message::arrayRows, name, rows, first->first, first->second);
      first = {name, rows};
    }
    for (const auto &[name, array] : file->arrays())
      if (!taken.count(name))
        others.add(name);
    files.push_back(std::move(file));
  }

  void addInput(const InputSpec &spec, const format::Manifest &manifest) {
    const Input *input = manifest.findInput(spec.input);
    if (!input)
      throw Failure::at("par-run", Message::renamesNothing, "--input", spec.input, listInputs(manifest))
          .exitsWith(exitUsage);
    if (!isArrayFile(spec.path))
      throw Failure::at(spec.path, Message::unknownData);
    auto file = std::make_shared<ArrayFile>(spec.path);
    if (spec.array.empty() && file->arrays().size() != 1)
      throw Failure::at(spec.path, Message::inputOfSeveral, file->arrays().size(), listNames(*file), spec.input,
                        spec.path);
    const std::string &name = spec.array.empty() ? file->arrays().begin()->first : spec.array;
    const ArrayView *array = file->find(name);
    if (!array)
      throw Failure::at(spec.path, Message::arrayMissing, name, listNames(*file));
    paths.add(spec.path);
    addArray(*input, *array, spec.path, name);
    files.push_back(std::move(file));
  }

  void addArray(const Input &input, const ArrayView &array, const std::string &path, const std::string &name) {
    bool isPixels = pixels.count(input.name) > 0;
    if (isPixels ? array.type != DType::U8 : !converts(array.type, input.type))
      refuseType(input, array, path, name, isPixels);
    checkShape(input, name, array.type, array.shape, path);
    if (isRounded(array.type, input.type))
      roundings.add(core::format("\"{}\" is {} there and {} in the bundle", format::printable(name),
                                 format::toString(array.type), format::toString(input.type)));
    if (!input.microbatched)
      return addWhole(input, {&array, 0, path, name});
    uint64_t &count = counts[input.name];
    shards[input.name].push_back({&array, count, path, name});
    count += static_cast<uint64_t>(array.shape[0]);
  }

  /// Each input that has rows has as many as the others: a file may lack one of them.
  void checkRows() const {
    for (const auto &[name, count] : counts)
      if (count != counts.begin()->second)
        throw Failure::at(place(), Message::inputRows, counts.begin()->second, counts.begin()->first, count, name);
  }

  /// An input without rows is looked at once, here; of several files that have it all say the same.
  void addWhole(const Input &input, Shard shard) {
    uint64_t elements = elementCount(input.shape);
    converted(input, shard, shard.array->data.data(), {}, elements, shard.whole);
    const std::byte *data = dataOf(shard);
    checkRange(input, {shard.place, shard.name, {}}, data, elements);
    std::vector<Shard> &known = shards[input.name];
    if (!known.empty() && std::memcmp(dataOf(known.front()), data, elements * format::sizeOf(input.type)) != 0)
      throw Failure::at(shard.place, Message::arraysDiffer, shard.name, known.front().place, input.name);
    known.push_back(std::move(shard));
  }

  static const std::byte *dataOf(const Shard &shard) {
    return shard.whole.empty() ? shard.array->data.data() : shard.whole.data();
  }

  /// `elements` at `from`, of the shard, in the input's type: in place, or in `scratch`.
  const std::byte *converted(const Input &input, const Shard &shard, const std::byte *from, std::optional<uint64_t> row,
                             uint64_t elements, std::vector<std::byte> &scratch) const {
    DType type = shard.array->type;
    if (type == input.type)
      return from;
    scratch.resize(elements * format::sizeOf(input.type));
    if (auto feed = pixels.find(input.name); feed != pixels.end()) {
      convertPixels(from, feed->second, input, scratch.data(), elements);
      return scratch.data();
    }
    if (uint64_t at = convertData(type, from, input.type, scratch.data(), elements); at < elements)
      throw Failure::at(shard.place, Message::valueRange, shard.name, describeElement(type, from, at),
                        row ? core::format("in row {}", *row) : core::format("at {}", at), input.name,
                        format::toString(input.type), "");
    return scratch.data();
  }

  PixelFeeds pixels;
  std::vector<std::shared_ptr<ArrayFile>> files;
  std::map<std::string, std::vector<Shard>> shards;
  std::map<std::string, uint64_t> counts; ///< rows of each input that has any
  NameList paths;
  NameList others;    ///< arrays of the files that no input takes
  NameList roundings; ///< and those whose values are rounded
};

} // namespace

std::unique_ptr<Dataset> openArrays(const ArrayFeed &feed, const format::Manifest &manifest) {
  return std::make_unique<ArrayDataset>(feed, manifest);
}

} // namespace par::core
