// Samples from safetensors files.
#include "par/data/Data.h"
#include "par/data/InputChecks.h"
#include "par/files/Convert.h"
#include "par/files/ForeignFiles.h"
#include "par/messages/Failure.h"

#include <cstring>
#include <filesystem>
#include <set>

namespace par::core {
namespace {

using format::Input;

/// One shard of an input's rows, or all of an input that has none.
struct Shard {
  const ArrayView *array = nullptr;
  uint64_t firstRow = 0;
  std::string place, name;
  std::vector<std::byte> wide = {}; ///< of an input without rows whose file has narrower integers
};

class ArrayDataset : public Dataset {
public:
  ArrayDataset(const std::vector<std::string> &specs, const format::Manifest &manifest) {
    for (const std::string &spec : specs)
      addFile(spec, manifest);
  }

  uint64_t rows() const override { return count; }
  bool has(const std::string &input) const override { return shards.count(input) > 0; }
  std::string describe() const override { return place() + ": " + grouped(count) + " rows"; }
  std::string feeds() const override {
    NameList names;
    for (const auto &[name, parts] : shards)
      names.add("\"" + name + "\"");
    std::string text = "--data " + place() + " feeds " + (names.empty() ? "nothing" : names.str());
    return others.empty() ? text : text + "; arrays of other names: " + others.str() + ", which F:input=array renames";
  }
  std::string place() const override { return paths.str(); }

  std::string unused() const override { return others.str(); }

  const std::byte *row(const Input &input, uint64_t row, std::vector<std::byte> &scratch) const override {
    const auto &parts = shards.at(input.name);
    size_t part = parts.size() - 1;
    while (parts[part].firstRow > row)
      --part;
    const Shard &shard = parts[part];
    uint64_t elements = elementCount(input.shape) / std::max<int64_t>(1, input.shape[0]);
    uint64_t local = row - shard.firstRow, fileBytes = elements * format::sizeOf(shard.array->type);
    const std::byte *data = shard.array->data.data() + local * fileBytes;
    if (shard.array->type != input.type)
      data = widened(data, shard.array->type, input.type, elements, scratch);
    checkRange(input, {shard.place, shard.name, local}, data, elements);
    return data;
  }

  const std::byte *whole(const Input &input) const override { return dataOf(shards.at(input.name).front()); }
  void checkWhole() const override {
    for (const auto &reader : readers)
      reader->checkWhole();
  }

private:
  /// "F" or "F:input=array,input=array".
  void addFile(const std::string &spec, const format::Manifest &manifest) {
    auto [path, renamings] = readDataSpec(spec);
    if (!isArrayFile(path))
      throw Failure::at(path, Message::unknownData, waysToConvert(path));
    const std::map<std::string, std::string> renamed = readRenamings(spec, renamings, manifest);
    auto reader = std::make_shared<SafetensorsReader>(path);
    paths.add(path);
    uint64_t rowsHere = 0;
    std::string first;
    std::set<std::string> taken;
    for (const Input &input : manifest.inputs) {
      auto alias = renamed.find(input.name);
      const std::string &name = alias == renamed.end() ? input.name : alias->second;
      const ArrayView *array = reader->find(name);
      if (!array && alias != renamed.end())
        throw Failure::at(path, Message::arrayMissing, name, listNames(*reader));
      if (!array)
        continue;
      taken.insert(name);
      checkArray(input, name, array->type, array->shape, path);
      if (!input.microbatched) {
        addWhole(input, {array, 0, path, name});
        continue;
      }
      auto rows = static_cast<uint64_t>(array->shape[0]);
      if (!first.empty() && rows != rowsHere)
        throw Failure::at(path, Message::arrayRows, name, rows, first, rowsHere);
      rowsHere = rows;
      first = name;
      shards[input.name].push_back({array, count, path, name});
    }
    count += rowsHere;
    for (const auto &[name, array] : reader->arrays())
      if (!taken.count(name))
        others.add(name);
    readers.push_back(std::move(reader));
  }

  /// Input -> array.
  static std::map<std::string, std::string> readRenamings(const std::string &spec, const std::string &text,
                                                          const format::Manifest &manifest) {
    std::map<std::string, std::string> renamed;
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

  /// An input without rows is looked at once, here; of several files that have it all say the same.
  void addWhole(const Input &input, Shard shard) {
    uint64_t elements = elementCount(input.shape);
    if (shard.array->type != input.type)
      widened(shard.array->data.data(), shard.array->type, input.type, elements, shard.wide);
    const std::byte *data = dataOf(shard);
    checkRange(input, {shard.place, shard.name, {}}, data, elements);
    std::vector<Shard> &known = shards[input.name];
    if (!known.empty() && std::memcmp(dataOf(known.front()), data, elements * format::sizeOf(input.type)) != 0)
      throw Failure::at(shard.place, Message::arraysDiffer, shard.name, known.front().place, input.name);
    known.push_back(std::move(shard));
  }

  static const std::byte *dataOf(const Shard &shard) {
    return shard.wide.empty() ? shard.array->data.data() : shard.wide.data();
  }

  static std::string listInputs(const format::Manifest &manifest) {
    NameList names;
    for (const Input &input : manifest.inputs)
      names.add(input.name);
    return names.str();
  }

  static std::string listNames(const SafetensorsReader &reader) {
    NameList names;
    for (const auto &[name, array] : reader.arrays())
      names.add(name);
    return names.str();
  }

  static const std::byte *widened(const std::byte *from, DType type, DType wide, uint64_t elements,
                                  std::vector<std::byte> &scratch) {
    scratch.resize(elements * format::sizeOf(wide));
    widen(type, from, wide, scratch.data(), elements);
    return scratch.data();
  }

  std::vector<std::shared_ptr<SafetensorsReader>> readers;
  std::map<std::string, std::vector<Shard>> shards;
  uint64_t count = 0;
  NameList paths;
  NameList others; ///< arrays of the files that no input takes
};

} // namespace

bool isArrayFile(const std::string &path) { return std::filesystem::path(path).extension() == ".safetensors"; }

DataSpec readDataSpec(const std::string &spec) {
  auto cut = [&](size_t end) { return DataSpec{spec.substr(0, end), spec.substr(end)}; };
  auto isThere = [&](size_t end) {
    std::error_code ignored;
    return std::filesystem::exists(spec.substr(0, end), ignored);
  };
  if (isThere(spec.size()))
    return cut(spec.size());
  constexpr std::string_view ending = ".safetensors:";
  size_t first = spec.size();
  for (size_t at = spec.find(ending); at != std::string::npos; at = spec.find(ending, at + 1)) {
    size_t end = at + ending.size() - 1;
    if (isThere(end))
      return cut(end);
    first = std::min(first, end);
  }
  // A file that is not there, or of another format.
  size_t colon = spec.rfind(':');
  if (first == spec.size() && colon != std::string::npos && spec.find('=', colon) != std::string::npos)
    return cut(colon);
  return cut(first);
}

std::unique_ptr<Dataset> openArrays(const std::vector<std::string> &specs, const format::Manifest &manifest) {
  return std::make_unique<ArrayDataset>(specs, manifest);
}

} // namespace par::core
