// Picks the next step, to hurt: from a seed, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace par::sim {

/// How an interleaving is hostile.
enum class Strategy : uint8_t {
  Issue,  ///< not at all: in the order of issue as far as ranks need not wait (the one that others are held
          ///< against)
  Random, ///< any queue whose head may go, all alike
  Delay,  ///< each head gets a delay between 1 and 2^20 when it becomes one; the earliest goes
  Starve  ///< one queue of one rank goes only when nothing else can
};
inline constexpr uint32_t hostileStrategies = 3;
/// "random order", "long delays", "one queue starved".
const char *toString(Strategy strategy);

/// Something that may go next.
struct Choice {
  uint32_t rank = 0, queue = 0; ///< of a meeting: its first member's
  uint32_t step = 0;
  uint64_t due = 0;     ///< for Delay
  bool starved = false; ///< involves the starved queue
};

class Adversary {
public:
  Adversary(Strategy strategy, uint64_t seed, uint32_t ranks);

  /// Whether a rank's communications run one at a time, in issue order, as on the one engine of V3.
  bool oneEngine() const { return engine; }
  /// When a step that becomes the head of its queue may go.
  uint64_t dueNow();
  bool starves(uint32_t rank, uint32_t queue) const {
    return strategy == Strategy::Starve && rank == victimRank && queue == victimQueue;
  }
  /// The index of the one that goes. `choices` is not empty.
  size_t pick(std::span<const Choice> choices);

private:
  uint64_t next();
  uint64_t below(uint64_t n) { return next() % n; }
  void chooseVictim();

  Strategy strategy;
  uint64_t state;
  uint32_t ranks, victimRank = 0, victimQueue = 0;
  uint64_t patience = 0, clock = 0;
  bool engine = false;
};

} // namespace par::sim
