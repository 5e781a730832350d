#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

/// Memory with a part that cannot be touched before and after it: it ends at one, or begins at one, so that an access
/// outside traps. Processes that fork share it.
class GuardedBuffer {
public:
  GuardedBuffer(size_t bytes, bool atEnd) : bytes(bytes) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    inside = (bytes + page - 1) / page * page;
    void *all = mmap(nullptr, inside + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
      return;
    base = static_cast<std::byte *>(all);
    constexpr int shared = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
    if (inside > 0 && mmap(base + guard, inside, PROT_READ | PROT_WRITE, shared, -1, 0) == MAP_FAILED)
      return;
    start = base + guard + (atEnd ? inside - bytes : 0);
  }
  ~GuardedBuffer() {
    if (base)
      munmap(base, inside + 2 * guard);
  }
  GuardedBuffer(const GuardedBuffer &) = delete;
  GuardedBuffer &operator=(const GuardedBuffer &) = delete;

  /// False where the system has no memory for it.
  explicit operator bool() const { return start; }

  /// From here on a write is an access outside, too.
  void forbidWrites() { mprotect(base + guard, inside, PROT_READ); }

  /// Whether an address is in the buffer or its guards, and how far it is from its first byte.
  bool owns(uint64_t address) const {
    return address >= reinterpret_cast<uint64_t>(base) &&
           address < reinterpret_cast<uint64_t>(base) + inside + 2 * guard;
  }
  int64_t offsetOf(uint64_t address) const { return static_cast<int64_t>(address - reinterpret_cast<uint64_t>(start)); }
  size_t size() const { return bytes; }

  template <typename T>
  T *as() const {
    return reinterpret_cast<T *>(start);
  }

private:
  static constexpr size_t guard = size_t(1) << 20;
  std::byte *base = nullptr, *start = nullptr;
  size_t bytes, inside = 0;
};
