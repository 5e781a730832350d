// Collectives. Members arrive with their posted operands, compare them, and then each reads from the others. An
// all_reduce in place goes in two halves: member r reduces chunk r, all meet, and each copies the chunks of the others.
// All meet once more before a member may overwrite data that others read. Contributions of up to
// 32 KiB in all (smallPayload) are copied into the payload area before the first meeting and need no other.
#include "Engine.h"
#include "Reduce.h"
#include "StreamCopy.h"
#include "par/messages/CommMessages.h"

#include <algorithm>

using namespace par;
using namespace par::comm;
using format::CollKind;

namespace {

/// Bytes that every member contributes to a collective, at most.
size_t contribution(const Communication &c, size_t members) {
  bool parts = c.kind == CollKind::ReduceScatter || c.kind == CollKind::AllToAll;
  return c.n * format::sizeOf(c.type) * (parts ? members : 1);
}

size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Chunk r of n elements, cut at cache lines: [begin, end) in elements.
struct Chunk {
  size_t begin, end;
};
Chunk chunkOf(const Communication &c, size_t r, size_t members) {
  size_t line = 64 / format::sizeOf(c.type);
  size_t each = ((c.n + members - 1) / members + line - 1) / line * line;
  return {std::min<size_t>(r * each, c.n), std::min<size_t>((r + 1) * each, c.n)};
}

void copy(void *to, const void *from, size_t bytes) {
  if (to == from || bytes == 0)
    return;
  if (bytes >= streamedBytes)
    streamCopy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

bool hasRoot(CollKind kind) { return kind == CollKind::Broadcast || kind == CollKind::Reduce; }
bool doesReduce(CollKind kind) {
  return kind == CollKind::AllReduce || kind == CollKind::ReduceScatter || kind == CollKind::Reduce;
}

/// Whether two members posted the same collective.
bool same(const Descriptor &a, const Descriptor &b) {
  return a.tag == b.tag && a.n == b.n && a.kind == b.kind && a.type == b.type &&
         (!doesReduce(a.kind) || a.reduction == b.reduction) && (!hasRoot(a.kind) || a.peer == b.peer) &&
         (a.kind != CollKind::AllToAll || (a.in == a.out) == (b.in == b.out));
}

} // namespace

void CollectiveRendezvous::publish(Self &self, Membership &my) {
  size_t n = my.area.size, total = 0;
  for (const Communication &c : posted) {
    total += lines(contribution(c, n));
    reduces |= c.kind == CollKind::AllReduce;
  }
  small = n > 1 && total <= smallPayload;
  round = my.rounds++;
  MemberArea &mine = my.area.members[my.self];
  mine.count[round & 1] = uint32_t(posted.size());
  std::byte *payload = my.area.payloadOf(round, my.self);
  for (size_t i = 0; i < posted.size(); ++i) {
    const Communication &c = posted[i];
    mine.posted[round & 1][i] = descriptorOf(self, c);
    if (!small)
      continue;
    size_t bytes = c.n * format::sizeOf(c.type);
    bool whole = c.kind != CollKind::AllGather || c.in != c.out;
    if (c.kind != CollKind::Broadcast || c.peer == my.self)
      copy(payload, static_cast<const std::byte *>(c.in) + (whole ? 0 : my.self * bytes), contribution(c, n));
    payload += lines(contribution(c, n));
  }
}

void CollectiveRendezvous::arrive(Self &self, Membership &my) {
  ++my.arrivals;
  ticket = my.arrivals;
  awaited = my.arrivals * my.area.size;
  my.area.members[my.self].arrivals.store(my.arrivals, std::memory_order_relaxed);
  if (my.area.arrivals->fetch_add(1) + 1 != awaited)
    return;
  // The last one wakes the others.
  for (uint32_t rank : my.members->ranks)
    if (rank != self.rank)
      (*self.fabric->sharedState)[rank].ring();
}

// All members compare with member 0, so that all say the same.
void CollectiveRendezvous::compare(const Membership &my) const {
  const std::vector<uint32_t> &ranks = my.members->ranks;
  const MemberArea &first = my.area.members[0];
  for (uint32_t m = 1; m < my.area.size; ++m) {
    const MemberArea &other = my.area.members[m];
    uint32_t count = std::min(first.count[round & 1], other.count[round & 1]);
    for (uint32_t i = 0; i < count; ++i) {
      const Descriptor &a = first.posted[round & 1][i], &b = other.posted[round & 1][i];
      if (!same(a, b))
        throw Mismatch(say(Sentence::mismatch, my.members->name, describe(a, ranks[0]), describe(b, ranks[m])));
    }
    if (first.count[round & 1] != other.count[round & 1])
      throw Mismatch(say(Sentence::groupMismatch, my.members->name, describe(first.posted[round & 1][0], ranks[0]),
                         first.count[round & 1], describe(other.posted[round & 1][0], ranks[m]),
                         other.count[round & 1]));
  }
}

namespace {

/// One collective after the first meeting: places of all members' contributions, and this member's work on them.
struct Combination {
  const Communication &c;
  uint32_t self;
  std::vector<const std::byte *> sources; ///< by member
  size_t bytes;                           ///< of n elements

  std::byte *out() const { return static_cast<std::byte *>(c.out); }
  size_t members() const { return sources.size(); }

  void reduceTo(std::byte *to, size_t offset, size_t n) const {
    std::vector<const std::byte *> at(sources);
    for (const std::byte *&source : at)
      source += offset;
    reduce(c.type, c.reduction, to, at, n);
  }

  /// First half of an all_reduce in place: sums this member's chunk over all members' operands.
  void reduceChunk() const {
    Chunk chunk = chunkOf(c, self, members());
    size_t offset = chunk.begin * format::sizeOf(c.type);
    reduceTo(out() + offset, offset, chunk.end - chunk.begin);
  }

  /// In place, each member of a pair holds the other's part: each swaps one half of it.
  void swapParts() const {
    for (size_t q = 0; q < members(); ++q) {
      if (q == self)
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

  void run(bool small) const {
    switch (c.kind) {
    case CollKind::AllReduce:
      return small ? reduceTo(out(), 0, c.n) : reduceChunk();
    case CollKind::Reduce:
      return self == c.peer ? reduceTo(out(), 0, c.n) : void();
    case CollKind::ReduceScatter:
      return reduceTo(out() + (c.in == c.out ? self * bytes : 0), self * bytes, c.n);
    case CollKind::AllGather:
      for (size_t q = 0; q < members(); ++q)
        copy(out() + q * bytes, sources[q], q == self && c.in == c.out ? 0 : bytes);
      return;
    case CollKind::Broadcast:
      return copy(out(), sources[c.peer], self == c.peer ? 0 : bytes);
    case CollKind::AllToAll:
      if (!small && c.in == c.out)
        return swapParts();
      for (size_t q = 0; q < members(); ++q)
        copy(out() + q * bytes, sources[q] + self * bytes, bytes);
      return;
    }
  }
};

} // namespace

void CollectiveRendezvous::combine(const Self &self, const Membership &my) {
  size_t offset = 0; // in the payload area
  for (size_t i = 0; i < posted.size(); ++i) {
    const Communication &c = posted[i];
    Combination combination{c, my.self, {}, c.n * format::sizeOf(c.type)};
    for (uint32_t q = 0; q < my.area.size; ++q) {
      const Descriptor &theirs = my.area.members[q].posted[round & 1][i];
      bool part = c.kind == CollKind::AllGather && theirs.in == theirs.out;
      combination.sources.push_back(small ? my.area.payloadOf(round, q) + offset
                                          : self.arena(my.members->ranks[q]) + theirs.in +
                                                (part ? q * combination.bytes : 0));
    }
    combination.run(small);
    offset += lines(contribution(c, my.area.size));
  }
}

// The second half of all_reduces: chunks that others have reduced.
void CollectiveRendezvous::spread(const Self &self, const Membership &my) {
  for (size_t i = 0; i < posted.size(); ++i) {
    const Communication &c = posted[i];
    if (c.kind != CollKind::AllReduce)
      continue;
    for (uint32_t q = 0; q < my.area.size; ++q) {
      if (q == my.self)
        continue;
      Chunk chunk = chunkOf(c, q, my.area.size);
      size_t offset = chunk.begin * format::sizeOf(c.type);
      const std::byte *theirs = self.arena(my.members->ranks[q]) + my.area.members[q].posted[round & 1][i].out;
      copy(static_cast<std::byte *>(c.out) + offset, theirs + offset,
           (chunk.end - chunk.begin) * format::sizeOf(c.type));
    }
  }
}

bool CollectiveRendezvous::advance(Self &self) {
  Membership &my = self.memberships[communicator];
  bool moved = false;
  if (stage == Stage::begin) {
    publish(self, my);
    arrive(self, my);
    stage = Stage::meet;
    moved = true;
  }
  while (stage != Stage::done && allHere(my)) {
    moved = true;
    if (stage == Stage::meet) {
      compare(my);
      combine(self, my);
      stage = small ? Stage::done : reduces ? Stage::spread : Stage::leave;
    } else if (stage == Stage::spread) {
      spread(self, my);
      stage = Stage::leave;
    } else {
      stage = Stage::done;
    }
    if (stage != Stage::done)
      arrive(self, my);
  }
  return moved;
}

std::vector<uint32_t> CollectiveRendezvous::missing(const Self &self) const {
  const Membership &my = self.memberships[communicator];
  std::vector<uint32_t> result;
  for (uint32_t q = 0; q < my.area.size; ++q)
    if (my.area.members[q].arrivals.load(std::memory_order_relaxed) < ticket)
      result.push_back(my.members->ranks[q]);
  return result;
}
