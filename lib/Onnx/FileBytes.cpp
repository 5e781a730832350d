#include "FileBytes.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace par::onnx {
namespace {

struct Descriptor {
  int fd;
  explicit Descriptor(const std::string &path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0)
      throw std::runtime_error("cannot be opened: " + std::string(std::strerror(errno)));
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { ::close(fd); }
  uint64_t size() const {
    struct stat status;
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
      throw std::runtime_error("is not a regular file");
    return status.st_size;
  }
};

} // namespace

std::shared_ptr<const FileBytes> FileBytes::open(const std::string &path, uint64_t limit, bool &compressed) {
  Descriptor file(path);
  uint64_t size = file.size();
  if (size == 0)
    throw std::runtime_error("is empty");
  // protobuf refuses 2 GiB without a word, so the size is looked at first.
  if (size >= limit)
    throw std::runtime_error("is " + std::to_string(size) +
                             " bytes; a model file holds less than 2 GiB: export it with external data");
  std::shared_ptr<FileBytes> bytes(new FileBytes);
  bytes->mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (bytes->mapping == MAP_FAILED) {
    bytes->mapping = nullptr;
    throw std::runtime_error("cannot be mapped: " + std::string(std::strerror(errno)));
  }
  bytes->mappedSize = size;
  bytes->data = static_cast<const char *>(bytes->mapping);
  bytes->size = size;
  compressed = size >= 2 && (unsigned char)bytes->data[0] == 0x1f && (unsigned char)bytes->data[1] == 0x8b;
  if (compressed)
    bytes->inflateAll(limit);
  return bytes;
}

void FileBytes::inflateAll(uint64_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    throw std::bad_alloc(); // all that is left to it
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data));
  stream.avail_in = size;
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
  data = inflated.data();
  size = inflated.size();
}

FileBytes::~FileBytes() {
  if (mapping)
    ::munmap(mapping, mappedSize);
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
    throw std::runtime_error("external data \"" + location + "\" lies outside the model's folder");
  std::error_code failure;
  fs::path folder = fs::absolute(modelPath).parent_path();
  fs::path file = folder / relative;
  if (!fs::exists(file, failure))
    return "";
  fs::path real = fs::canonical(file, failure), root = fs::canonical(folder, failure);
  if (failure || std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end())
    throw std::runtime_error("external data \"" + location + "\" is a link out of the model's folder");
  return real.string();
}

uint64_t fileSize(const std::string &path) { return Descriptor(path).size(); }

std::string readRange(const std::string &path, uint64_t offset, uint64_t length) {
  Descriptor file(path);
  uint64_t size = file.size();
  if (offset > size || length > size - offset)
    throw std::runtime_error("\"" + path + "\" has " + std::to_string(size) + " bytes, wanted " +
                             std::to_string(length) + " at " + std::to_string(offset));
  std::string bytes(length, 0);
  for (uint64_t done = 0; done < length;) {
    ssize_t count = ::pread(file.fd, bytes.data() + done, length - done, offset + done);
    if (count <= 0)
      throw std::runtime_error("\"" + path + "\" cannot be read behind byte " + std::to_string(offset + done) + ": " +
                               (count ? std::strerror(errno) : "it ends there"));
    done += count;
  }
  return bytes;
}

} // namespace par::onnx
