// Allocations that fail say how large they were.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <new>

namespace par::format {

/// Thrown by `new` in a program that has called nameFailedAllocations(), and by requireRoom() in any.
class OutOfMemory : public std::bad_alloc {
public:
  explicit OutOfMemory(size_t bytes) noexcept {
    std::snprintf(text.data(), text.size(), "out of memory: %zu bytes were asked for", bytes);
  }
  /// "out of memory: 1048576 bytes were asked for".
  const char *what() const noexcept override { return text.data(); }

private:
  std::array<char, 64> text;
};

/// Throws OutOfMemory if the system does not give so many bytes now; they are not kept. For calls of a library that
/// does not check its allocations.
void requireRoom(size_t bytes);

/// To be called in a program's main; links the `new` that throws OutOfMemory.
void nameFailedAllocations();

} // namespace par::format
