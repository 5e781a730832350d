// One member's work on a collective, once all operands are known.
#pragma once

#include "Engine.h"

namespace par::comm {

/// Bytes that every member contributes to a collective, at most.
size_t contribution(const Communication &c, size_t members);
/// Rounded up to cache lines.
size_t lines(size_t bytes);
/// As memcpy; large ones past the caches.
void copyBytes(void *to, const void *from, size_t bytes);

/// Chunk r of n elements, cut at cache lines: [begin, end) in elements.
struct Chunk {
  size_t begin, end;
};
Chunk chunkOf(const Communication &c, size_t r, size_t members);

/// One collective after the first meeting: places of all members' contributions, and this member's work on them.
struct Combination {
  const Communication &c;
  uint32_t self;
  std::vector<const std::byte *> sources; ///< by member; null of one on another host, whose bytes come over the carrier
  size_t bytes;                           ///< of n elements

  std::byte *out() const { return static_cast<std::byte *>(c.out); }
  size_t members() const { return sources.size(); }

  void reduceTo(std::byte *to, size_t offset, size_t n) const;
  /// First half of an all_reduce in place: sums this member's chunk over all members' operands.
  void reduceChunk() const;
  /// In place, each member of a pair holds the other's part: each swaps one half of it.
  void swapParts() const;
  /// All of it that needs only sources that are here; `small`: they lie in the payload area.
  void run(bool small) const;
};

} // namespace par::comm
