// One order in which all ranks play one entry, from its first step until every queue has drained.
#pragma once

#include "par/sim/World.h"
#include "sim/Adversary.h"
#include "sim/PendingCollectives.h"
#include "sim/Races.h"

namespace par::sim {

/// A race, or ranks that wait for each other: the message, and a line for each side.
struct Trouble {
  std::string what;
  std::vector<std::string> notes;
};

class Interleaving {
public:
  Interleaving(std::vector<Part> &parts, const std::vector<const Ledger *> &ledgers,
               const std::vector<comm::Members> &table, Adversary adversary);

  /// Plays to the end, or to the first trouble. Feeds come from each part's host, and `fetch` takes the
  /// results.
  using Fetch = std::function<void(uint32_t rank, uint32_t step, std::span<const std::byte>)>;
  std::optional<Trouble> play(const Fetch &fetch);

  uint64_t steps() const { return clock; }
  uint64_t meetings() const { return met; }

private:
  struct Queue {
    std::vector<uint32_t> issued; ///< steps, in order
    size_t next = 0;              ///< the head
    uint64_t due = 0;             ///< of the head
    bool posted = false;          ///< whether the head is a communication that its members may meet in
    uint32_t pieces = 0;          ///< of the head that have not happened yet
    Clock before{};               ///< what the queue had seen when the head was posted
    bool empty() const { return next == issued.size(); }
    uint32_t head() const { return issued[next]; }
  };
  struct Rank {
    std::vector<Queue> queues;
    std::vector<Clock> now;              ///< by queue
    std::vector<Clock> signals;          ///< by step
    std::vector<uint8_t> signalled;      ///< by step
    std::vector<uint32_t> communication; ///< steps that communicate, in issue order
    size_t nextCommunication = 0;
    Shadow shadow;
  };

  void collect();
  bool mayGo(uint32_t rank, Queue &queue);
  void postHead(uint32_t rank, uint32_t queue);
  std::optional<Trouble> runHead(uint32_t rank, uint32_t queue, const Fetch &fetch);
  std::optional<Trouble> meet(const std::vector<Piece> &pieces);
  std::optional<Trouble> touch(uint32_t rank, uint32_t step, uint32_t piece, const View &view);
  void endHead(uint32_t rank, Queue &queue);
  const core::Command &stepOf(uint32_t rank, uint32_t step) const { return parts[rank].entry->steps[step]; }
  Trouble stuck() const;

  std::vector<Part> &parts;
  const std::vector<const Ledger *> &ledgers;
  PendingCollectives rendezvous;
  Adversary adversary;
  std::vector<Rank> ranks;
  std::vector<Choice> choices; ///< heads first, then meetings
  std::vector<std::vector<Piece>> readyMeetings;
  uint64_t clock = 0, met = 0, left = 0;
};

} // namespace par::sim
