#include "par/files/Safetensors.h"

#include "format/Json.h"
#include "par/format/Printable.h"
#include "par/format/SafetensorsHeader.h"
#include "par/messages/Failure.h"

#include <cstring>

namespace par::core {

MappedFile::MappedFile(const std::string &path) : name(path) {
  auto mapped = format::MappedPlainFile::open(path);
  if (!mapped)
    throw Failure::at(path, Message::cannotOpen, mapped.message());
  content = std::move(*mapped);
}

std::span<const std::byte> MappedFile::bytes() const { return std::as_bytes(std::span(content.bytes())); }

void MappedFile::checkWhole() const {
  if (auto status = content.stillWhole(); !status)
    throw Failure(name, status.message());
}

std::string readTextFile(const std::string &path) {
  auto text = format::readPlainFile(path);
  if (!text)
    throw Failure::at(path, Message::cannotOpen, text.message());
  return std::move(*text);
}

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

std::string describeShape(std::span<const int64_t> shape) { return format::listOf(shape, ", "); }

std::string describeArray(DType type, std::span<const int64_t> shape) {
  return std::string(format::toString(type)) + describeShape(shape);
}

SafetensorsReader::SafetensorsReader(const std::string &path) : file(path) {
  auto bytes = file.bytes();
  auto header = format::readSafetensors({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  if (!header)
    throw Failure(path, header.message());
  for (format::SafetensorsEntry &entry : header->arrays)
    content.emplace(std::move(entry.name),
                    ArrayView{entry.type, std::move(entry.shape), bytes.subspan(entry.begin, entry.end - entry.begin)});
  meta = std::move(header->metadata);
  dataBegin = header->dataBegin;
}

const ArrayView *SafetensorsReader::find(const std::string &name) const {
  auto found = content.find(name);
  return found == content.end() ? nullptr : &found->second;
}

SafetensorsWriter::SafetensorsWriter(const std::string &path, std::vector<ArrayHeader> arrays, bool create,
                                     const std::map<std::string, std::string> &metadata, size_t alignment)
    : file(path, create) {
  format::Writer entries;
  entries.raw("{");
  if (!metadata.empty()) {
    entries.key("__metadata__").raw("{");
    for (const auto &[key, value] : metadata)
      entries.key(key).text(value);
    entries.raw("}");
  }
  uint64_t at = 0;
  for (const ArrayHeader &array : arrays) {
    uint64_t bytes = static_cast<uint64_t>(elementCount(array.shape)) * format::sizeOf(array.type);
    entries.key(array.name).raw("{").key("dtype").text(format::safetensorsName(array.type)).key("shape");
    entries.numbers(array.shape).key("data_offsets").numbers(std::vector<uint64_t>{at, at + bytes}).raw("}");
    begins.push_back(at);
    at += bytes;
  }
  header = entries.raw("}").take();
  uint64_t length = (sizeof length + header.size() + alignment - 1) / alignment * alignment - sizeof length;
  header.resize(length, ' ');
  header.insert(0, reinterpret_cast<const char *>(&length), sizeof length);
  for (uint64_t &begin : begins)
    begin += header.size();
  total = header.size() + at;
  if (!create)
    return;
  file.write(0, headerBytes());
  file.resize(total);
}

void SafetensorsWriter::amendHeader(const std::string &from, const std::string &to) {
  size_t at = header.find(from);
  header.replace(at, from.size(), to);
  file.write(at, headerBytes().subspan(at, to.size()));
}

void SafetensorsWriter::startSync(uint64_t end) {
  file.startSync(header.size() + started, end - started);
  started = end;
}

void SafetensorsWriter::write(size_t index, uint64_t offset, std::span<const std::byte> bytes) {
  file.write(begins[index] + offset, bytes);
}

} // namespace par::core
