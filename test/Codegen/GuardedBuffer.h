#ifndef PAR_TEST_CODEGEN_GUARDEDBUFFER_H
#define PAR_TEST_CODEGEN_GUARDEDBUFFER_H

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

/// Memory with an unreadable page before and after: it ends at one, or begins at one, so that an access
/// outside traps.
class GuardedBuffer {
public:
  GuardedBuffer(size_t bytes, bool atEnd) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), inside = (bytes + page - 1) / page * page;
    mapped = inside + 2 * page;
    base = static_cast<std::byte *>(mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + page, inside, PROT_READ | PROT_WRITE);
    start = base + page + (atEnd ? inside - bytes : 0);
  }
  ~GuardedBuffer() { munmap(base, mapped); }
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;

  template <typename T>
  T *as() const {
    return reinterpret_cast<T *>(start);
  }

private:
  std::byte *base, *start;
  size_t mapped;
};

#endif
