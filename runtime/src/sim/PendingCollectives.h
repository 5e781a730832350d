// The simulation's rendezvous: a communication happens atomically, after all its members have posted it, at a moment
// that the adversary picks. It changes memory as communicators do: reductions in member order, in f32.
#pragma once

#include "par/comm/engine/Communicator.h"

#include <deque>
#include <map>

namespace par::sim {

/// One rank's part of a communication that it has posted.
struct Piece {
  uint32_t rank = 0, queue = 0, step = 0;
  uint32_t piece = 0; ///< its number in the unit
  const comm::Communication *what = nullptr;
};

class PendingCollectives {
public:
  explicit PendingCollectives(const std::vector<comm::Members> &table);

  void post(const Piece &piece);
  /// The parts of each communication that could happen now, in member order (sender first). Deterministic.
  std::vector<std::vector<Piece>> ready() const;
  /// Removes one of ready() and lets it happen. Throws comm::Mismatch where the members disagree.
  void happen(const std::vector<Piece> &pieces);

private:
  struct Channel {
    std::deque<Piece> sends, recvs;
  };
  uint32_t memberOf(const Piece &piece) const;
  void collective(const std::vector<Piece> &pieces) const;

  const std::vector<comm::Members> &table;
  std::vector<std::vector<std::deque<Piece>>> waiting; ///< [communicator][member]: collectives
  std::map<std::array<uint32_t, 3>, Channel> channels; ///< communicator, sender, receiver
};

} // namespace par::sim
