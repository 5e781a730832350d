// Collectives. Members arrive with their posted operands, compare them, and then each reads from the others. An
// all_reduce in place goes in two halves: member r reduces chunk r, all meet, and each copies the chunks of the others.
// All meet once more before a member may overwrite data that others read. Contributions of up to
// 32 KiB in all (smallPayload) are copied into the payload area before the first meeting and need no other.
#include "Combination.h"
#include "par/messages/CommMessages.h"

#include <algorithm>

using namespace par;
using namespace par::comm;
using format::CollKind;

namespace {

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

size_t CollectiveRendezvous::payloadBytes(const Membership &my) const {
  size_t total = 0;
  for (const Communication &c : posted)
    total += lines(contribution(c, my.area.size));
  return total;
}

void CollectiveRendezvous::publish(Self &self, Membership &my) {
  size_t n = my.area.size;
  for (const Communication &c : posted)
    reduces |= c.kind == CollKind::AllReduce;
  small = n > 1 && payloadBytes(my) <= smallPayload;
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
      copyBytes(payload, static_cast<const std::byte *>(c.in) + (whole ? 0 : my.self * bytes), contribution(c, n));
    payload += lines(contribution(c, n));
  }
}

void CollectiveRendezvous::arrive(Self &self, Membership &my) {
  ++my.arrivals;
  ticket = my.arrivals;
  awaited = my.arrivals * my.local;
  my.area.members[my.self].arrivals.store(my.arrivals, std::memory_order_relaxed);
  if (my.area.arrivals->fetch_add(1) + 1 != awaited)
    return;
  // The last one wakes the others.
  for (uint32_t rank : my.members->ranks)
    if (rank != self.rank && !self.isAway(rank))
      (*self.fabric->sharedState)[rank].ring();
}

std::span<const Descriptor> CollectiveRendezvous::postedBy(const Membership &my, uint32_t member) const {
  if (my.isAway(member))
    return remote->postedBy(member);
  const MemberArea &area = my.area.members[member];
  return {area.posted[round & 1], area.count[round & 1]};
}

// All members compare with member 0, so that all say the same.
void CollectiveRendezvous::compare(const Membership &my) const {
  const std::vector<uint32_t> &ranks = my.members->ranks;
  std::span<const Descriptor> first = postedBy(my, 0);
  for (uint32_t m = 1; m < my.area.size; ++m) {
    std::span<const Descriptor> other = postedBy(my, m);
    size_t count = std::min(first.size(), other.size());
    for (size_t i = 0; i < count; ++i) {
      const Descriptor &a = first[i], &b = other[i];
      if (!same(a, b))
        throw Mismatch(say(Sentence::mismatch, my.members->name, describe(a, ranks[0]), describe(b, ranks[m])));
    }
    if (first.size() != other.size())
      throw Mismatch(say(Sentence::groupMismatch, my.members->name, describe(first[0], ranks[0]), first.size(),
                         describe(other[0], ranks[m]), other.size()));
  }
}

/// The contribution of a member to the collective `i`, whose small one lies at `offset` of its payload.
const std::byte *CollectiveRendezvous::sourceOf(const Self &self, const Membership &my, size_t i, uint32_t member,
                                                size_t offset) const {
  if (small)
    return (my.isAway(member) ? remote->payloadOf(member) : my.area.payloadOf(round, member)) + offset;
  if (my.isAway(member))
    return nullptr;
  const Communication &c = posted[i];
  const Descriptor &theirs = my.area.members[member].posted[round & 1][i];
  bool part = c.kind == CollKind::AllGather && theirs.in == theirs.out;
  return self.arena(my.members->ranks[member]) + theirs.in + (part ? member * c.n * format::sizeOf(c.type) : 0);
}

void CollectiveRendezvous::combine(const Self &self, const Membership &my) {
  size_t offset = 0; // in the payload area
  for (size_t i = 0; i < posted.size(); ++i) {
    const Communication &c = posted[i];
    Combination combination{c, my.self, {}, c.n * format::sizeOf(c.type)};
    for (uint32_t q = 0; q < my.area.size; ++q)
      combination.sources.push_back(sourceOf(self, my, i, q, offset));
    if (remote && !small)
      remote->begin(combination, i);
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
    if (remote)
      remote->beginSpread(c, i);
    for (uint32_t q = 0; q < my.area.size; ++q) {
      if (q == my.self || my.isAway(q))
        continue;
      Chunk chunk = chunkOf(c, q, my.area.size);
      size_t offset = chunk.begin * format::sizeOf(c.type);
      const std::byte *theirs = self.arena(my.members->ranks[q]) + my.area.members[q].posted[round & 1][i].out;
      copyBytes(static_cast<std::byte *>(c.out) + offset, theirs + offset,
                (chunk.end - chunk.begin) * format::sizeOf(c.type));
    }
  }
}

bool CollectiveRendezvous::mayGoOn(const Membership &my) const {
  switch (stage) {
  case Stage::meet:
    return allHere(my) && (!remote || remote->met());
  case Stage::first:
  case Stage::second:
    return !remote || remote->settled();
  default:
    return allHere(my);
  }
}

void CollectiveRendezvous::goOn(Self &self, Membership &my) {
  switch (stage) {
  case Stage::meet:
    compare(my);
    combine(self, my);
    stage = Stage::first;
    return;
  case Stage::first:
    stage = small ? Stage::done : reduces ? Stage::spread : Stage::leave;
    if (!small)
      arrive(self, my);
    return;
  case Stage::spread:
    spread(self, my);
    stage = Stage::second;
    return;
  case Stage::second:
    stage = Stage::leave;
    return arrive(self, my);
  default:
    stage = Stage::done;
  }
}

bool CollectiveRendezvous::advance(Self &self) {
  Membership &my = self.memberships[communicator];
  bool moved = false;
  if (stage == Stage::begin) {
    publish(self, my);
    arrive(self, my);
    if (!my.away.empty()) {
      remote = std::make_unique<RemoteCollective>(self, my, communicator);
      remote->announce(postedBy(my, my.self), small ? my.area.payloadOf(round, my.self) : nullptr, payloadBytes(my));
    }
    stage = Stage::meet;
    moved = true;
  }
  while (stage != Stage::done) {
    if (remote)
      moved |= remote->advance();
    if (!mayGoOn(my))
      break;
    goOn(self, my);
    moved = true;
  }
  return moved;
}

std::vector<uint32_t> CollectiveRendezvous::missing(const Self &self) const {
  const Membership &my = self.memberships[communicator];
  std::vector<uint32_t> result;
  for (uint32_t q = 0; q < my.area.size; ++q)
    if (my.isAway(q) ? remote && remote->awaits(q)
                     : my.area.members[q].arrivals.load(std::memory_order_relaxed) < ticket)
      result.push_back(my.members->ranks[q]);
  return result;
}
