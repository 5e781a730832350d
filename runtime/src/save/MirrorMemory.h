// State of another rank in the memory of this one, which outlives its process (par-run --mirror).
#pragma once

#include "CopyMemory.h"
#include "MirrorPlan.h"

#include <array>

namespace par::core {

/// A mirror that some rank holds.
struct HeldMirror {
  uint32_t rank = 0;  ///< whose state it is
  bool whole = false; ///< as in mirrorRanges()
  uint64_t step = 0;  ///< the boundary

  bool operator==(const HeldMirror &) const = default;
  std::string encode() const;
  /// Reads one from the front of the text and removes it.
  static HeldMirror decode(std::string &text);
};

/// Two memories, each with a mirror of a boundary, or none: the mirror of one boundary stays until all ranks have
/// theirs of the next one. Each may be of another rank, for neighbours change where spares take places.
class MirrorMemory {
public:
  /// `descriptors`: as in comm::Placing. Their content counts if it is of this bundle.
  MirrorMemory(const format::Bundle &bundle, std::array<int, 2> descriptors);

  std::vector<HeldMirror> held() const;
  std::span<const std::byte> bytesOf(const HeldMirror &mirror) const;
  /// Room for a mirror, in the memory that does not hold the same rank's, or else another one's, of the boundary
  /// `stays`; it counts after end(). Throws std::runtime_error where memory is lacking.
  std::span<std::byte> begin(const HeldMirror &mirror, uint64_t stays);
  void end();

private:
  struct Side {
    HeldMirror mirror;
    CopyMemory memory;
    bool holds() const { return memory && !memory.boundaries().empty(); }
  };
  std::string identityOf(uint32_t rank, bool whole) const;
  void open(Side &side, int descriptor);

  const format::Bundle &bundle;
  std::array<int, 2> descriptors;
  std::array<Side, 2> sides;
  size_t filling = 0;
};

} // namespace par::core
