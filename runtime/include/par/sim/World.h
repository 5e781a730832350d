// The device `sim`: all ranks of a job in one process, the CPU's kernels on simulated queues. Whatever
// par-verify claims of a program's order is tried on it: every queue, and every meeting of ranks, moves in
// orders that a hostile scheduler picks from a seed, and every access to the arenas is held against what
// queues and events order. The same seed gives the same orders.
#pragma once

#include "par/cpu/LocalSteps.h"

#include <map>

namespace par::sim {

struct Options {
  uint64_t seed = 1;
  /// How many orders each run of an entry is played in; all must end with the same bits. The first is that of
  /// issue.
  uint32_t interleavings = 1;
};

/// Registered by a rank's device. All of it outlives the world.
struct Part {
  const core::DeviceOptions *options = nullptr;
  cpu::LocalSteps *local = nullptr;
  std::span<std::byte> dev, host; ///< arenas, without guards
  std::vector<core::Stamp> *stamps = nullptr;
  // of the run that is to be played
  const core::ExpandedEntry *entry = nullptr;
  std::span<const core::HyperValue> hypers;
  core::EntryHost *results = nullptr;
};

/// Counts of the simulation so far.
struct Played {
  uint64_t runs = 0, interleavings = 0, steps = 0, meetings = 0;
};

class Adversary;
class Ledger;

/// Shared by the ranks' devices: the arenas, and the one thread that executes all of them.
class World {
public:
  World(uint32_t ranks, Options options);
  ~World();

  /// The rank's part, to be filled in before and between plays.
  Part &operator[](uint32_t rank) { return parts[rank]; }

  /// Plays the entry of all parts in all interleavings, each from the same state, and delivers the results of the last
  /// one. Called by one rank while the others wait. Throws core::Failure for a race, for ranks that wait for each
  /// other, and if two interleavings end with different state or results.
  void play();

  /// Whether the last play threw; set by its caller.
  bool failed = false;

  const Played &played() const { return total; }
  const Options &options() const { return wanted; }

private:
  struct Outcome;
  const Ledger &ledgerOf(uint32_t rank);
  Outcome playOnce(const std::vector<const Ledger *> &books, Adversary adversary, const std::string &name);
  void restore(const std::vector<std::vector<std::byte>> &state);
  void compare(const Outcome &first, const Outcome &other, const std::string &name) const;
  void deliver(const Outcome &outcome);

  std::vector<Part> parts;
  Options wanted;
  Played total;
  /// By rank and entry.
  std::map<std::pair<uint32_t, const core::ExpandedEntry *>, std::unique_ptr<Ledger>> ledgers;
};

} // namespace par::sim
