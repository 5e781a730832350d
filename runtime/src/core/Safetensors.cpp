#include "par/core/Safetensors.h"

#include "par/core/Failure.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace par::core {

using json = nlohmann::ordered_json;

MappedFile::MappedFile(const std::string &path) : name(path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (descriptor < 0 || fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    std::string reason = descriptor < 0 ? std::strerror(errno) : "not a plain file";
    if (descriptor >= 0)
      close(descriptor);
    throw Failure::at(path, Message::cannotOpen, reason);
  }
  size = static_cast<size_t>(info.st_size);
  void *mapped = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (mapped == MAP_FAILED)
    throw Failure::at(path, Message::cannotOpen, std::strerror(errno));
  data = static_cast<const std::byte *>(mapped);
}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  std::swap(name, other.name);
  return *this;
}

MappedFile::~MappedFile() {
  if (data)
    munmap(const_cast<std::byte *>(data), size);
}

void MappedFile::drop() const {
  if (data)
    madvise(const_cast<std::byte *>(data), size, MADV_DONTNEED);
}

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

std::string describeShape(std::span<const int64_t> shape) {
  std::string text = "[";
  for (int64_t dim : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

std::string describeArray(DType type, std::span<const int64_t> shape) {
  return std::string(format::toString(type)) + describeShape(shape);
}

namespace {

constexpr struct {
  std::string_view name;
  DType type;
} typeNames[] = {{"F64", DType::F64}, {"F32", DType::F32}, {"F16", DType::F16}, {"BF16", DType::BF16},
                 {"I64", DType::I64}, {"I32", DType::I32}, {"I16", DType::I16}, {"I8", DType::I8},
                 {"U8", DType::U8},   {"BOOL", DType::I1}, {"U64", DType::U64}, {"U32", DType::U32},
                 {"U16", DType::U16}};

std::optional<DType> typeOf(std::string_view name) {
  for (const auto &entry : typeNames)
    if (entry.name == name)
      return entry.type;
  return std::nullopt;
}

std::string_view nameOf(DType type) {
  for (const auto &entry : typeNames)
    if (entry.type == type)
      return entry.name;
  return "U8";
}

/// Bytes of a shape, nullopt when a dim is negative or the product does not fit 62 bits.
std::optional<uint64_t> bytesOf(std::span<const int64_t> shape, DType type) {
  uint64_t bytes = format::sizeOf(type);
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes) || bytes >> 62)
      return std::nullopt;
  return bytes;
}

/// One entry of the header, checked against the bytes that follow it.
ArrayView readEntry(const std::string &path, const std::string &name, const json &entry,
                    std::span<const std::byte> data) {
  ArrayView array;
  uint64_t begin = 0, end = 0;
  std::string typeName;
  try {
    typeName = entry.at("dtype").get<std::string>();
    for (const json &dim : entry.at("shape"))
      array.shape.push_back(dim.get<int64_t>());
    begin = entry.at("data_offsets").at(0).get<uint64_t>();
    end = entry.at("data_offsets").at(1).get<uint64_t>();
  } catch (const json::exception &error) {
    throw Failure::at(path, Message::badTensorEntry, name, error.what());
  }
  auto type = typeOf(typeName);
  if (!type)
    throw Failure::at(path, Message::unknownDtype, name, typeName);
  array.type = *type;
  auto bytes = bytesOf(array.shape, *type);
  if (!bytes || begin > end || end > data.size() || end - begin != *bytes)
    throw Failure::at(path, Message::badOffsets, name, begin, end, data.size(),
                      bytes ? std::to_string(*bytes) : "more than can be");
  array.data = data.subspan(begin, end - begin);
  return array;
}

} // namespace

SafetensorsReader::SafetensorsReader(const std::string &path) : file(path) {
  auto bytes = file.bytes();
  uint64_t length = 0;
  if (bytes.size() < sizeof length)
    throw Failure::at(path, Message::tooShort, bytes.size());
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - sizeof length || length > (100u << 20))
    throw Failure::at(path, Message::headerTooLong, length, bytes.size());
  const char *text = reinterpret_cast<const char *>(bytes.data() + sizeof length);
  json header;
  try {
    header = json::parse(text, text + length);
  } catch (const json::exception &error) {
    throw Failure::at(path, Message::headerNotJson, error.what());
  }
  if (!header.is_object())
    throw Failure::at(path, Message::headerNotJson, header.type_name());
  for (const auto &[name, entry] : header.items()) {
    if (name != "__metadata__") {
      content.emplace(name, readEntry(path, name, entry, bytes.subspan(sizeof length + length)));
      continue;
    }
    for (const auto &[key, value] : entry.items())
      if (value.is_string())
        meta[key] = value.get<std::string>();
  }
}

const ArrayView *SafetensorsReader::find(const std::string &name) const {
  auto found = content.find(name);
  return found == content.end() ? nullptr : &found->second;
}

SafetensorsWriter::SafetensorsWriter(const std::string &path, std::vector<ArrayHeader> arrays, bool create,
                                     const std::map<std::string, std::string> &metadata)
    : file(path, create) {
  json header = json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const ArrayHeader &array : arrays) {
    uint64_t bytes = static_cast<uint64_t>(elementCount(array.shape)) * format::sizeOf(array.type);
    header[array.name] = {{"dtype", nameOf(array.type)}, {"shape", array.shape}, {"data_offsets", {at, at + bytes}}};
    begins.push_back(at);
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  for (uint64_t &begin : begins)
    begin += sizeof length + length;
  total = sizeof length + length + at;
  if (!create)
    return;
  text.insert(0, reinterpret_cast<const char *>(&length), sizeof length);
  file.write(0, std::as_bytes(std::span(text)));
  file.resize(total);
}

void SafetensorsWriter::write(size_t index, uint64_t offset, std::span<const std::byte> bytes) {
  file.write(begins[index] + offset, bytes);
}

} // namespace par::core
