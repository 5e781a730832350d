// Breaks one rank's program in a known way.
#pragma once

#include "par/format/Bundle.h"

#include <map>
#include <optional>

namespace par::toy {

/// Change to a program. The first ones apply to a communication, from Slot on to the memory of any instruction, from
/// Wait on to the order in which queues move, from Slots on to the runs of an entry: the schedule's table.
enum class Mutation : uint8_t {
  Drop,
  Duplicate,
  Swap,
  Peer,
  Count,
  Type,
  Reduce,
  Group,
  Order,
  Slot,
  Depth,
  Offset,
  Place,
  Alias,
  Wait,
  Signal,
  Event,
  Queue,
  Move,
  Slots,
  Line,
  Chunk,
  Stale
};
inline constexpr size_t mutationKinds = 23;
std::string_view toString(Mutation mutation);

/// The same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// In [0, n).
  size_t below(size_t n) { return size_t(next() % n); }

private:
  uint64_t state;
};

/// Gives `rank` a program of its own and mutates it. nullopt when the program has nothing to mutate in that
/// way. `what` receives one line that says what was done.
std::optional<format::Bundle> mutate(const format::Bundle &bundle, uint32_t rank, Mutation mutation, Random &random,
                                     std::string &what);

/// How a series of mutations went.
struct Tally {
  /// By mutation, then by what rejected it: "V1" ... "V6".
  std::map<std::string, std::map<std::string, uint64_t>> rejected;
  /// Accepted, and the symbolic run of all ranks ends with the same values as the original: nothing was
  /// broken.
  std::map<std::string, uint64_t> equivalent;
  /// Accepted, but computes something else: the verifier's fault. Each text tells the change and its rank.
  std::vector<std::string> escaped;
  uint64_t total = 0;
};

/// `count` mutations of random ranks, all kinds in turn. With a folder, each mutant is written there, with new hashes,
/// and judged from its files; a mutant that the writer refuses counts as V1.
Tally mutateMany(const format::Bundle &bundle, uint64_t count, uint64_t seed, const std::string &folder = "");
/// The table of a tally.
std::string format(const Tally &tally);

} // namespace par::toy
