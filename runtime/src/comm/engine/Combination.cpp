// One member's work on a collective.
#include "Combination.h"
#include "Reduce.h"
#include "StreamCopy.h"

#include <algorithm>

using namespace par;
using namespace par::comm;
using format::CollKind;

size_t par::comm::contribution(const Communication &c, size_t members) {
  bool parts = c.kind == CollKind::ReduceScatter || c.kind == CollKind::AllToAll;
  return c.n * format::sizeOf(c.type) * (parts ? members : 1);
}

size_t par::comm::lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

Chunk par::comm::chunkOf(const Communication &c, size_t r, size_t members) {
  size_t line = 64 / format::sizeOf(c.type);
  size_t each = ((c.n + members - 1) / members + line - 1) / line * line;
  return {std::min<size_t>(r * each, c.n), std::min<size_t>((r + 1) * each, c.n)};
}

void par::comm::copyBytes(void *to, const void *from, size_t bytes) {
  if (to == from || bytes == 0)
    return;
  if (bytes >= streamedBytes)
    streamCopy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

void Combination::reduceTo(std::byte *to, size_t offset, size_t n) const {
  std::vector<const std::byte *> at(sources);
  for (const std::byte *&source : at)
    source += offset;
  reduce(c.type, c.reduction, to, at, n);
}

void Combination::reduceChunk() const {
  Chunk chunk = chunkOf(c, self, members());
  size_t offset = chunk.begin * format::sizeOf(c.type);
  reduceTo(out() + offset, offset, chunk.end - chunk.begin);
}

void Combination::swapParts() const {
  for (size_t q = 0; q < members(); ++q) {
    if (q == self || !sources[q])
      continue;
    std::byte *mine = out() + q * bytes;
    std::byte *other = const_cast<std::byte *>(sources[q]) + self * bytes;
    size_t half = bytes / 2;
    if (self < q)
      std::swap_ranges(mine, mine + half, other);
    else
      std::swap_ranges(mine + half, mine + bytes, other + half);
  }
}

void Combination::run(bool small) const {
  bool all = std::find(sources.begin(), sources.end(), nullptr) == sources.end();
  switch (c.kind) {
  case CollKind::AllReduce:
    return small ? reduceTo(out(), 0, c.n) : all ? reduceChunk() : void();
  case CollKind::Reduce:
    return all && self == c.peer ? reduceTo(out(), 0, c.n) : void();
  case CollKind::ReduceScatter:
    return all ? reduceTo(out() + (c.in == c.out ? self * bytes : 0), self * bytes, c.n) : void();
  case CollKind::AllGather:
    for (size_t q = 0; q < members(); ++q)
      if (sources[q])
        copyBytes(out() + q * bytes, sources[q], q == self && c.in == c.out ? 0 : bytes);
    return;
  case CollKind::Broadcast:
    return sources[c.peer] ? copyBytes(out(), sources[c.peer], self == c.peer ? 0 : bytes) : void();
  case CollKind::AllToAll:
    if (!small && c.in == c.out)
      return swapParts();
    for (size_t q = 0; q < members(); ++q)
      if (sources[q])
        copyBytes(out() + q * bytes, sources[q] + self * bytes, bytes);
    return;
  }
}
