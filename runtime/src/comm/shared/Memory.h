// Arenas and what ranks share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace par::comm {

/// Zeroed pages, unmapped with the last owner.
struct Mapping {
  std::span<std::byte> bytes;
  std::shared_ptr<void> owner;
};

/// Private memory of this process; large pages if the kernel gives them. Throws std::bad_alloc.
Mapping mapPrivate(size_t bytes);
/// Memory of this process and of those that it forks. Throws std::runtime_error.
Mapping mapPublic(size_t bytes);

/// Memory without a name, for processes that inherited the descriptor or got it over a socket: nothing is
/// left when they have ended, however they ended.
class SharedFile {
public:
  SharedFile() = default;
  /// Takes over a descriptor.
  explicit SharedFile(int descriptor) : fd(descriptor) {}
  SharedFile(SharedFile &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  SharedFile &operator=(SharedFile &&other) noexcept;
  ~SharedFile();

  /// An empty one. `name` is for /proc only.
  static SharedFile create(const char *name);
  int descriptor() const { return fd; }
  void resize(size_t bytes);
  Mapping map(size_t bytes) const;
  /// Zeroes what any process has written into it, through a mapping of it, whose pages are then this process's.
  void clear(std::span<std::byte> mapped) const;

private:
  int fd = -1;
};

} // namespace par::comm
