// The part of a communication that members on other hosts take.
#include "RemoteCollective.h"
#include "Combination.h"
#include "Reduce.h"
#include "par/messages/CommMessages.h"

#include <algorithm>

using namespace par;
using namespace par::comm;
using format::CollKind;

namespace {

/// {count, descriptors, payload}.
constexpr size_t headerBytes = sizeof(uint64_t) + format::maxGroup * sizeof(Descriptor) + smallPayload;
static_assert(headerBytes <= HostCarrier::maxSmall);

uint64_t countIn(const std::vector<std::byte> &room) {
  uint64_t count;
  std::memcpy(&count, room.data(), sizeof count);
  return std::min<uint64_t>(count, format::maxGroup);
}

} // namespace

RemoteCollective::RemoteCollective(Self &self, Membership &my, uint32_t communicator)
    : self(self), my(my), communicator(communicator) {
  my.headers.own.resize(headerBytes);
  my.headers.others.resize(my.area.size);
  for (uint32_t member : my.away)
    my.headers.others[member].resize(headerBytes);
}

void RemoteCollective::announce(std::span<const Descriptor> posted, const std::byte *payload, size_t bytes) {
  HostCarrier &carrier = *self.fabric->carrier;
  std::byte *at = my.headers.own.data();
  uint64_t count = posted.size();
  std::memcpy(at, &count, sizeof count);
  std::memcpy(at + sizeof count, posted.data(), posted.size_bytes());
  size_t size = sizeof count + posted.size_bytes();
  if (payload && bytes) {
    std::memcpy(at + size, payload, bytes);
    size += bytes;
  }
  uint32_t tag = carrierTag(communicator, CarrierTag::collectiveHeader);
  for (uint32_t member : my.away) {
    uint32_t rank = my.members->ranks[member];
    headersCome.push_back(carrier.receive(rank, tag, my.headers.others[member]));
    headersSent.push_back(carrier.send(rank, tag, {at, size}));
  }
}

bool RemoteCollective::met() const {
  return std::all_of(headersCome.begin(), headersCome.end(), [](const HostCarrier::Ticket &ticket) { return *ticket; });
}

std::span<const Descriptor> RemoteCollective::postedBy(uint32_t member) const {
  const std::vector<std::byte> &room = my.headers.others[member];
  return {reinterpret_cast<const Descriptor *>(room.data() + sizeof(uint64_t)), countIn(room)};
}

const std::byte *RemoteCollective::payloadOf(uint32_t member) const {
  const std::vector<std::byte> &room = my.headers.others[member];
  return room.data() + sizeof(uint64_t) + countIn(room) * sizeof(Descriptor);
}

StreamEnd RemoteCollective::endOf(uint32_t member, size_t i) const {
  return {my.members->ranks[member], carrierTag(communicator, CarrierTag::collective, i)};
}

void RemoteCollective::send(uint32_t member, size_t i, const std::byte *from, size_t bytes) {
  outgoing.emplace_back(endOf(member, i), from, bytes);
}

void RemoteCollective::receive(uint32_t member, size_t i, std::byte *to, size_t bytes) {
  incoming.emplace_back(endOf(member, i), to, bytes);
}

void RemoteCollective::reduceHere(const Combination &combination, size_t i, std::byte *out, size_t offset,
                                  size_t bytes) {
  Reducing one{combination.c, combination.sources, out, {}, 0, bytes};
  for (const std::byte *&source : one.sources)
    source = source ? source + offset : nullptr;
  for (uint32_t member : my.away)
    one.streams.emplace_back(endOf(member, i), bytes);
  reducing.push_back(std::move(one));
}

// In place, a part is overwritten by the part that comes for it.
void RemoteCollective::beginAllToAll(const Combination &combination, size_t i) {
  const Communication &c = combination.c;
  size_t bytes = combination.bytes;
  const std::byte *in = static_cast<const std::byte *>(c.in);
  for (uint32_t member : my.away) {
    const std::byte *from = in + member * bytes;
    if (c.in == c.out) {
      kept.emplace_back(from, from + bytes);
      from = kept.back().data();
    }
    send(member, i, from, bytes);
    receive(member, i, combination.out() + member * bytes, bytes);
  }
}

void RemoteCollective::begin(const Combination &combination, size_t i) {
  const Communication &c = combination.c;
  const std::byte *in = static_cast<const std::byte *>(c.in);
  size_t bytes = combination.bytes, size = format::sizeOf(c.type), members = combination.members();
  Chunk own = chunkOf(c, my.self, members);
  switch (c.kind) {
  case CollKind::AllReduce:
    for (uint32_t member : my.away) {
      Chunk chunk = chunkOf(c, member, members);
      send(member, i, in + chunk.begin * size, (chunk.end - chunk.begin) * size);
    }
    return reduceHere(combination, i, combination.out() + own.begin * size, own.begin * size,
                      (own.end - own.begin) * size);
  case CollKind::ReduceScatter:
    for (uint32_t member : my.away)
      send(member, i, in + member * bytes, bytes);
    return reduceHere(combination, i, combination.out() + (c.in == c.out ? my.self * bytes : 0), my.self * bytes,
                      bytes);
  case CollKind::Reduce:
    if (my.isAway(c.peer))
      return send(c.peer, i, in, bytes);
    return my.self == c.peer ? reduceHere(combination, i, combination.out(), 0, bytes) : void();
  case CollKind::AllGather:
    for (uint32_t member : my.away) {
      send(member, i, in + (c.in == c.out ? my.self * bytes : 0), bytes);
      receive(member, i, combination.out() + member * bytes, bytes);
    }
    return;
  case CollKind::Broadcast:
    if (my.isAway(c.peer))
      return receive(c.peer, i, combination.out(), bytes);
    for (uint32_t member : my.away)
      if (my.self == c.peer)
        send(member, i, in, bytes);
    return;
  case CollKind::AllToAll:
    return beginAllToAll(combination, i);
  }
}

void RemoteCollective::beginSpread(const Communication &c, size_t i) {
  size_t size = format::sizeOf(c.type);
  std::byte *out = static_cast<std::byte *>(c.out);
  Chunk own = chunkOf(c, my.self, my.area.size);
  for (uint32_t member : my.away) {
    Chunk chunk = chunkOf(c, member, my.area.size);
    send(member, i, out + own.begin * size, (own.end - own.begin) * size);
    receive(member, i, out + chunk.begin * size, (chunk.end - chunk.begin) * size);
  }
}

// Pieces are reduced when they have come from all members.
bool RemoteCollective::Reducing::advance(HostCarrier &carrier, const std::vector<uint32_t> &away) {
  bool moved = false;
  for (Incoming &stream : streams)
    moved |= stream.advance(carrier);
  while (done < bytes) {
    size_t n = bytes - done;
    for (const Incoming &stream : streams)
      n = std::min(n, stream.ready());
    if (n == 0)
      break;
    std::vector<const std::byte *> at(sources);
    for (const std::byte *&source : at)
      source = source ? source + done : nullptr;
    for (size_t k = 0; k < away.size(); ++k)
      at[away[k]] = streams[k].piece();
    reduce(c.type, c.reduction, out + done, at, n / format::sizeOf(c.type));
    for (Incoming &stream : streams)
      stream.take(n);
    done += n;
    moved = true;
  }
  return moved;
}

bool RemoteCollective::advance() {
  HostCarrier &carrier = *self.fabric->carrier;
  bool moved = false;
  for (Outgoing &stream : outgoing)
    moved |= stream.advance(carrier);
  for (Incoming &stream : incoming)
    moved |= stream.advance(carrier);
  for (Reducing &one : reducing)
    moved |= one.advance(carrier, my.away);
  return moved;
}

bool RemoteCollective::settled() const {
  auto ended = [](const auto &streams) {
    return std::all_of(streams.begin(), streams.end(), [](const auto &stream) { return stream.done(); });
  };
  return std::all_of(headersSent.begin(), headersSent.end(),
                     [](const HostCarrier::Ticket &ticket) { return *ticket; }) &&
         ended(outgoing) && ended(incoming) &&
         std::all_of(reducing.begin(), reducing.end(), [](const Reducing &one) { return one.done == one.bytes; });
}

bool RemoteCollective::awaits(uint32_t member) const {
  uint32_t rank = my.members->ranks[member];
  size_t place = size_t(std::find(my.away.begin(), my.away.end(), member) - my.away.begin());
  auto waits = [rank](const auto &streams) {
    return std::any_of(streams.begin(), streams.end(),
                       [rank](const auto &stream) { return stream.rank() == rank && !stream.done(); });
  };
  return !*headersCome[place] || waits(outgoing) || waits(incoming) ||
         std::any_of(reducing.begin(), reducing.end(), [&](const Reducing &one) { return waits(one.streams); });
}

RemoteTransfer::RemoteTransfer(HostCarrier &carrier, const Communication &posted, const Descriptor &mine,
                               uint32_t peerRank)
    : receives(posted.op == format::Op::Recv), started(receives), announced(mine) {
  uint32_t headerTag = carrierTag(posted.communicator, CarrierTag::transferHeader);
  StreamEnd end{peerRank, carrierTag(posted.communicator, CarrierTag::transfer)};
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(&announced, 1));
  size_t size = posted.n * format::sizeOf(posted.type);
  if (receives)
    incoming.emplace(end, static_cast<std::byte *>(posted.out), size);
  else
    outgoing.emplace(end, static_cast<const std::byte *>(posted.in), size);
  header = receives ? carrier.send(peerRank, headerTag, bytes) : carrier.receive(peerRank, headerTag, bytes);
}

bool RemoteTransfer::advance(HostCarrier &carrier) {
  if (!started)
    return false;
  return receives ? incoming->advance(carrier) : outgoing->advance(carrier);
}

bool RemoteTransfer::done() const { return started && *header && (receives ? incoming->done() : outgoing->done()); }
