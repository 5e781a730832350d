// Bytes that travel between a rank and one of another host, in pieces: several are under way at a time, and each that
// arrives is a sign of life.
#pragma once

#include "comm/carrier/HostCarrier.h"

#include <algorithm>
#include <deque>
#include <vector>

namespace par::comm {

inline constexpr size_t pieceBytes = size_t(256) << 10;
/// Pieces under way in one stream. Ranks poll between instructions, and no more than these move beside one: 4 MiB are
/// as much as the system's buffers of a connection take.
inline constexpr size_t piecesUnderWay = 16;

/// The other end of a stream: the rank, and the tag of its messages.
struct StreamEnd {
  uint32_t rank = 0, tag = 0;
};

class Outgoing {
public:
  Outgoing(StreamEnd end, const std::byte *from, size_t bytes) : end(end), from(from), bytes(bytes) {}
  /// True if it moved.
  bool advance(HostCarrier &carrier);
  bool done() const { return posted == bytes && underWay.empty(); }
  uint32_t rank() const { return end.rank; }

private:
  StreamEnd end;
  const std::byte *from;
  size_t bytes, posted = 0;
  std::deque<HostCarrier::Ticket> underWay;
};

class Incoming {
public:
  /// To its place.
  Incoming(StreamEnd end, std::byte *to, size_t bytes) : end(end), to(to), bytes(bytes) {}
  /// To room of its own, from which each piece must be taken.
  Incoming(StreamEnd end, size_t bytes)
      : end(end), bytes(bytes), room(std::min(bytes, pieceBytes * piecesUnderWay)), staged(true) {}
  bool advance(HostCarrier &carrier);
  bool done() const { return arrived == bytes && (!staged || taken == bytes); }
  uint32_t rank() const { return end.rank; }
  /// Bytes that have come and have not been taken, up to the end of a piece.
  size_t ready() const { return std::min({arrived - taken, pieceBytes - taken % pieceBytes, bytes - taken}); }
  const std::byte *piece() const { return room.data() + taken % (pieceBytes * piecesUnderWay); }
  void take(size_t count) { taken += count; }

private:
  StreamEnd end;
  std::byte *to = nullptr;
  size_t bytes, posted = 0, arrived = 0, taken = 0;
  std::vector<std::byte> room;
  bool staged = false;
  std::deque<std::pair<HostCarrier::Ticket, size_t>> underWay;
};

} // namespace par::comm
