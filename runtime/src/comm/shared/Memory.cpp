// Arenas and what ranks share.
#include "Memory.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace par::comm;

namespace {

constexpr size_t largeArena = size_t(64) << 20;

Mapping mapPages(size_t bytes, int flags, int fd) {
  size_t size = std::max<size_t>(bytes, 1);
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error(say(Sentence::cannotMap, bytes, std::strerror(errno)));
  // A hint that kernels without large pages refuse. Small arenas keep small pages: touched pages can be counted.
  if (size >= largeArena)
    madvise(memory, size, MADV_HUGEPAGE);
  return {{static_cast<std::byte *>(memory), bytes}, {memory, [size](void *p) { munmap(p, size); }}};
}

} // namespace

Mapping par::comm::mapPrivate(size_t bytes) { return mapPages(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1); }

Mapping par::comm::mapPublic(size_t bytes) { return mapPages(bytes, MAP_SHARED | MAP_ANONYMOUS, -1); }

SharedFile &SharedFile::operator=(SharedFile &&other) noexcept {
  std::swap(fd, other.fd);
  return *this;
}

SharedFile::~SharedFile() {
  if (fd >= 0)
    close(fd);
}

SharedFile SharedFile::create(const char *name) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0)
    throw std::runtime_error(say(Sentence::cannotShare, 0, std::strerror(errno)));
  return SharedFile(fd);
}

void SharedFile::resize(size_t bytes) {
  if (ftruncate(fd, off_t(bytes)) != 0)
    throw std::runtime_error(say(Sentence::cannotShare, bytes, std::strerror(errno)));
}

Mapping SharedFile::map(size_t bytes) const {
  // Pages beyond the end of the file would end this process when they are touched.
  struct stat file{};
  if (fstat(fd, &file) != 0 || uint64_t(file.st_size) < bytes)
    throw std::runtime_error(say(Sentence::sharedTooSmall, file.st_size, bytes));
  return mapPages(bytes, MAP_SHARED, fd);
}

void SharedFile::clear(std::span<std::byte> mapped) const {
  off_t size = off_t(mapped.size()), end = 0;
  for (off_t at = 0; (at = lseek(fd, end, SEEK_DATA)) >= 0 && at < size;) {
    off_t hole = lseek(fd, at, SEEK_HOLE);
    end = hole < 0 ? size : std::min(size, hole);
    std::span<std::byte> written = mapped.subspan(size_t(at), size_t(end - at));
    madvise(written.data(), written.size(), MADV_POPULATE_WRITE); // a hint: one call in place of a fault a page
    std::memset(written.data(), 0, written.size());
  }
}
