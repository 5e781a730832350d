// Memory of one rank that outlives its process: two copies of a state, of which one is whole at any moment, and beside
// them one that is made when a loss has ended a step; or one copy.
#pragma once

#include "comm/shared/Memory.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace par::core {

/// A boundary between two steps, and what a run knows there beside its tensors.
struct Boundary {
  uint64_t step = 0, rows = 0, skipped = 0; ///< as in RunPosition
  double lastLoss = std::nan("");
  uint64_t resident = 0; ///< bytes of the arena, as they were measured last
  bool saidIgnored = false;

  std::string encode() const;
  /// Reads one from the front of the text and removes it.
  static Boundary decode(std::string &text);
};

class CopyMemory {
public:
  /// No memory.
  CopyMemory() = default;
  /// The memory of a descriptor, with room for so many copies of so many bytes, of which the spare one is taken only by
  /// beginSpare(). Its content counts if `goesOn` and it was made with the same `identity` and size. Throws
  /// std::runtime_error where memory is lacking.
  CopyMemory(int descriptor, uint64_t bytes, const std::string &identity, bool goesOn, size_t count = copies);
  /// One that has been opened so, by this rank or another one.
  CopyMemory(int descriptor, uint64_t bytes, size_t count = copies);

  explicit operator bool() const { return !memory.bytes.empty(); }
  static uint64_t sizeFor(uint64_t bytes, size_t count = copies);
  /// The identity that such a memory was made with; "" where there is none.
  static std::string identityIn(int descriptor);

  /// Whether the run began with the initial values.
  bool begun() const;
  void begin();
  /// Boundaries of which a copy is whole, oldest first; not that of the spare one.
  std::vector<Boundary> boundaries() const;
  /// The boundary of the spare copy, where that is whole.
  std::optional<Boundary> spareBoundary() const;
  /// Takes memory for the spare copy and begins it; empty where memory is lacking.
  std::span<std::byte> beginSpare();
  /// The spare copy has no boundary any more.
  void dropSpare();
  /// The index of a boundary's copy, `spare` if only that is whole; past it where none is.
  size_t find(uint64_t step) const;
  std::span<std::byte> bytesAt(size_t index) const;
  /// Between these two the copy is not whole.
  void beginCopy(size_t index);
  void endCopy(size_t index, const Boundary &boundary);

  static constexpr size_t notesBytes = 256, copies = 2, spare = copies;
  /// Beside the copies; zeroed when the memory is made.
  std::byte *notes() const;

private:
  struct Copy;
  struct Header;
  Header &header() const;

  uint64_t bytes = 0;
  int descriptor = -1; ///< not this object's own
  comm::Mapping memory;
};

} // namespace par::core
