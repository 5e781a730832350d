// Earlier accesses of bytes: vector clocks (Lamport 1978, Mattern 1989) of the queues of one rank over the bytes of its
// arenas, as in FastTrack (Flanagan, Freund 2009): the last write of a byte, and its last read on every queue since.
// Other ranks order nothing here: a program's own queues and events must order its accesses.
#pragma once

#include "sim/Ledger.h"

#include <array>
#include <map>
#include <optional>

namespace par::sim {

/// How much of each queue's work has been seen.
using Clock = std::array<uint32_t, format::maxQueues>;

/// Work that is ordered before an access: that which its queue had seen, and its own.
struct View {
  Clock seen;
  uint32_t queue, own; ///< own: its time on its queue
  bool has(uint32_t otherQueue, uint32_t time) const {
    return time <= seen[otherQueue] || (otherQueue == queue && time == own);
  }
};

class Shadow {
public:
  /// Notes an access. The number of an earlier one that nothing orders before it, if there is one.
  std::optional<uint32_t> touch(const Access &access, uint32_t number, const View &view);

private:
  struct Mark {
    uint32_t time = 0, access = 0; ///< time 0: none
  };
  struct Segment {
    const std::byte *end = nullptr;
    uint32_t writer = 0; ///< queue
    Mark written;
    std::array<Mark, format::maxQueues> read;
  };
  using Segments = std::map<const std::byte *, Segment>;

  void splitAt(const std::byte *at);
  /// The first of the segments that cover exactly [begin, end).
  Segments::iterator cover(const std::byte *begin, const std::byte *end);

  Segments segments; ///< by begin; bytes outside all segments were never touched
};

} // namespace par::sim
