// The header of a safetensors file.
#include "par/format/SafetensorsHeader.h"

#include "Json.h"
#include "par/format/Printable.h"

#include <algorithm>
#include <cstring>

using namespace par::format;

/// The reference library's.
static constexpr uint64_t maxHeader = 100'000'000;

static constexpr struct {
  std::string_view name;
  DType type;
} typeNames[] = {{"F64", DType::F64}, {"F32", DType::F32}, {"F16", DType::F16}, {"BF16", DType::BF16},
                 {"I64", DType::I64}, {"I32", DType::I32}, {"I16", DType::I16}, {"I8", DType::I8},
                 {"U8", DType::U8},   {"BOOL", DType::I1}, {"U64", DType::U64}, {"U32", DType::U32},
                 {"U16", DType::U16}};

static std::optional<DType> typeOf(std::string_view name) {
  for (const auto &entry : typeNames)
    if (entry.name == name)
      return entry.type;
  return std::nullopt;
}

std::string_view par::format::safetensorsName(DType type) {
  for (const auto &entry : typeNames)
    if (entry.type == type)
      return entry.name;
  return "U8";
}

/// Bytes of a shape; nullopt if they do not fit 62 bits.
static std::optional<uint64_t> bytesOf(const std::vector<int64_t> &shape, DType type) {
  uint64_t bytes = sizeOf(type);
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes) || bytes >> 62)
      return std::nullopt;
  return bytes;
}

static std::string range(uint64_t begin, uint64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

static const Json *member(const Json &object, std::string_view key) {
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i] == key)
      return &object.items[i];
  return nullptr;
}

/// Whole numbers of a list; nullopt if it is none.
static std::optional<std::vector<int64_t>> numbersOf(const Json *list) {
  if (!list || list->kind != Json::Array)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json &item : list->items) {
    if (item.kind != Json::Int)
      return std::nullopt;
    numbers.push_back(item.integer);
  }
  return numbers;
}

/// One entry of the header, checked against the `size` bytes of data; begin and end count from where the data begin.
static Expected<SafetensorsEntry> readEntry(const std::string &name, const Json &json, uint64_t size) {
  const Json *dtype = member(json, "dtype");
  std::optional<std::vector<int64_t>> shape = numbersOf(member(json, "shape"));
  std::optional<std::vector<int64_t>> offsets = numbersOf(member(json, "data_offsets"));
  if (!dtype || dtype->kind != Json::String || !shape || !offsets || offsets->size() != 2 || (*offsets)[0] < 0)
    return Error{"entry \"" + name +
                 "\" of the header needs dtype, shape and data_offsets: a word, whole numbers, and two"};
  std::optional<DType> type = typeOf(dtype->text);
  if (!type)
    return Error{"tensor \"" + name + "\" has the type " + dtype->text + ", which is not supported"};
  SafetensorsEntry entry{name, *type, std::move(*shape), static_cast<uint64_t>((*offsets)[0]),
                         static_cast<uint64_t>((*offsets)[1])};
  std::optional<uint64_t> bytes = bytesOf(entry.shape, *type);
  if (!bytes || entry.begin > entry.end || entry.end > size || entry.end - entry.begin != *bytes)
    return Error{"tensor \"" + name + "\" says bytes " + range(entry.begin, entry.end) + " of " + std::to_string(size) +
                 ", and its shape needs " + (bytes ? std::to_string(*bytes) : "more than can be")};
  return entry;
}

/// Every byte of the data belongs to one tensor.
static Status checkCover(const std::vector<SafetensorsEntry> &arrays, uint64_t size) {
  std::vector<const SafetensorsEntry *> sorted;
  for (const SafetensorsEntry &array : arrays)
    sorted.push_back(&array);
  std::sort(sorted.begin(), sorted.end(), [](const SafetensorsEntry *a, const SafetensorsEntry *b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  const SafetensorsEntry *last = nullptr;
  uint64_t at = 0;
  for (const SafetensorsEntry *array : sorted) {
    if (array->begin < at)
      return Error{"tensors \"" + last->name + "\" and \"" + array->name + "\" overlap from byte " +
                   std::to_string(array->begin) + " of the data"};
    if (array->begin > at)
      return Error{"bytes " + range(at, array->begin) + " of the data, before \"" + array->name +
                   "\", belong to no tensor"};
    at = array->end;
    last = array;
  }
  if (at != size)
    return Error{"bytes " + range(at, size) + " of the data, after the last tensor, belong to no tensor"};
  return {};
}

static Status readMetadata(const Json &json, SafetensorsHeader &header) {
  if (json.kind != Json::Object)
    return Error{"__metadata__ of the header is no object of texts"};
  for (size_t i = 0; i < json.keys.size(); ++i) {
    if (json.items[i].kind != Json::String)
      return Error{"__metadata__ of the header: \"" + json.keys[i] + "\" is no text"};
    header.metadata[json.keys[i]] = json.items[i].text;
  }
  return {};
}

static Expected<SafetensorsHeader> readHeader(std::string_view file) {
  uint64_t length = 0;
  if (file.size() < sizeof length)
    return Error{"is " + std::to_string(file.size()) + " bytes, too short for a safetensors file"};
  std::memcpy(&length, file.data(), sizeof length);
  if (length > file.size() - sizeof length || length > maxHeader)
    return Error{"header of " + std::to_string(length) + " bytes does not fit into the file of " +
                 std::to_string(file.size()) + (length > maxHeader ? ", or is longer than 100,000,000" : "")};
  std::string_view text = file.substr(sizeof length, length), data = file.substr(sizeof length + length);
  Expected<Json> json = parseJson(text, "header");
  if (!json)
    return json.error();
  if (json->kind != Json::Object || text[0] != '{')
    return Error{"header is not a JSON object"};
  SafetensorsHeader header;
  header.arrays.reserve(json->keys.size());
  for (size_t i = 0; i < json->keys.size(); ++i) {
    if (json->keys[i] == "__metadata__") {
      if (Status status = readMetadata(json->items[i], header); !status)
        return status.error();
      continue;
    }
    Expected<SafetensorsEntry> entry = readEntry(json->keys[i], json->items[i], data.size());
    if (!entry)
      return entry.error();
    header.arrays.push_back(std::move(*entry));
  }
  if (Status status = checkCover(header.arrays, data.size()); !status)
    return status.error();
  header.dataBegin = sizeof length + length;
  for (SafetensorsEntry &array : header.arrays) {
    array.begin += header.dataBegin;
    array.end += header.dataBegin;
  }
  return header;
}

Expected<SafetensorsHeader> par::format::readSafetensors(std::string_view file) {
  Expected<SafetensorsHeader> header = readHeader(file);
  return header ? header : Error{excerpt(printable(header.message()))}; // with names of the file
}

Expected<SafetensorsFile> par::format::mapSafetensors(const std::string &path) {
  Expected<MappedPlainFile> file = MappedPlainFile::open(path);
  if (!file)
    return file.error();
  Expected<SafetensorsHeader> header = readSafetensors(file->bytes());
  if (!header)
    return header.error();
  return SafetensorsFile{std::move(*file), std::move(*header)};
}
