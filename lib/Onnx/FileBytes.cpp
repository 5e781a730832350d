#include "FileBytes.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <zlib.h>

namespace par::onnx {

std::shared_ptr<const FileBytes> FileBytes::open(const std::string &path, uint64_t limit, bool &compressed) {
  auto mapped = format::MappedPlainFile::open(path);
  if (!mapped)
    throw std::runtime_error("cannot be opened: " + mapped.message());
  std::string_view content = mapped->bytes();
  if (content.empty())
    throw std::runtime_error("is empty");
  // protobuf refuses 2 GiB without a word, so the size is looked at first.
  if (content.size() >= limit)
    throw std::runtime_error("is " + std::to_string(content.size()) +
                             " bytes; a model file holds less than 2 GiB: export it with external data");
  std::shared_ptr<FileBytes> bytes(new FileBytes);
  bytes->mapped = std::move(*mapped);
  bytes->content = content;
  compressed = content.starts_with("\x1f\x8b");
  if (compressed)
    bytes->inflateAll(limit);
  return bytes;
}

void FileBytes::checkWhole() const {
  if (format::Status status = mapped.stillWhole(); !status)
    throw std::runtime_error(status.message());
}

void FileBytes::inflateAll(uint64_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    throw std::bad_alloc(); // all that is left to it
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
  stream.avail_in = content.size();
  std::string chunk(1 << 20, 0);
  int status = Z_OK;
  while (status == Z_OK && inflated.size() < limit) {
    stream.next_out = reinterpret_cast<Bytef *>(chunk.data());
    stream.avail_out = chunk.size();
    status = inflate(&stream, Z_NO_FLUSH);
    inflated.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (inflated.size() >= limit)
    throw std::runtime_error("inflates to " + std::to_string(limit) +
                             " bytes or more; a model file holds less: export it with external data");
  if (status != Z_STREAM_END)
    throw std::runtime_error("is a damaged gzip file");
  content = inflated;
}

std::string resolveExternal(const std::string &modelPath, const std::string &location) {
  namespace fs = std::filesystem;
  fs::path relative(location);
  if (location.empty() || location.find('\0') != std::string::npos)
    throw std::runtime_error("external data has no file name");
  bool climbs = false;
  for (const fs::path &part : relative)
    climbs |= part == "..";
  if (relative.is_absolute() || climbs)
    throw std::runtime_error("external data \"" + location + "\" is outside the model's folder");
  std::error_code failure;
  fs::path named = fs::absolute(modelPath), target = fs::canonical(named, failure);
  for (const fs::path &folder : {named.parent_path(), target.parent_path()}) {
    fs::path file = folder / relative;
    if (folder.empty() || !fs::exists(file, failure))
      continue;
    fs::path real = fs::canonical(file, failure), root = fs::canonical(folder, failure);
    if (failure || std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end())
      throw std::runtime_error("external data \"" + location + "\" is a link out of the model's folder");
    return real.string();
  }
  return "";
}

format::PlainFile openExternal(const std::string &path, const std::string &location) {
  auto file = format::PlainFile::open(path);
  if (!file)
    throw std::runtime_error("external data \"" + location + "\" cannot be opened: " + file.message());
  return std::move(*file);
}

std::string readRange(const std::string &path, const std::string &location, uint64_t offset, uint64_t length) {
  format::PlainFile file = openExternal(path, location);
  std::string bytes(length, 0);
  if (format::Status status = file.read(offset, bytes.data(), length); !status)
    throw std::runtime_error("external data \"" + location + "\" " + status.message());
  return bytes;
}

} // namespace par::onnx
