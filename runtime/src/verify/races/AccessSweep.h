// One pass over an expanded program, byte for byte.
#pragma once

#include "verify/accesses/Accesses.h"

#include <array>
#include <map>
#include <set>

namespace par::verify {

using Clock = std::array<uint32_t, format::maxQueues>;
using Found = std::optional<Counterexample>;

/// One write of an expanded entry; 0 is "before the entry".
struct Definition {
  const format::Run *run = nullptr;
  uint32_t n = 0;
  bool read = false;
};

struct Cell {
  uint32_t root = format::noIndex; ///< noIndex: undefined
  int64_t index = 0;
  uint32_t definition = 0;
  uint32_t queue = 0, time = 0;         ///< of the last write
  Clock reads{};                        ///< time of the last read on each queue
  uint64_t name = 0;                    ///< of its value
  uint32_t updates = 0;                 ///< runs that have written it in this entry
  const format::Run *updater = nullptr; ///< the last of them
  uint32_t reader = 0; ///< definition number of its reader, unless to accumulate, since it was overwritten
  const format::Run *begun = nullptr; ///< the run that overwrote it, while no other one has written it
  bool readByItsOwn = false;          ///< that run has read it: a first summand, not yet a sum
  uint32_t summands = 0;              ///< of a sum: the set of microbatches that have added to it
};

/// The set of its parent and one microbatch more; the first of a list is empty, and its own parent.
struct SummandSet {
  uint32_t parent = 0;
  int64_t microbatch = -1;
};

/// A parameter that was sent to its copy, after so many updates.
struct Copied {
  const format::Run *run;
  uint32_t n, root, cell, updates;
};

/// An access with its cells for each slot.
struct Placed {
  ByteAccess access;
  std::vector<std::pair<uint32_t, uint32_t>> cells; ///< [slot]: begin, end
};

class AccessSweep {
public:
  AccessSweep(const format::Bundle &bundle, uint32_t rank, Lineage &lineage)
      : bundle(bundle), rank(rank), program(bundle.programs[bundle.manifest.ranks[rank].role]), lineage(lineage) {}
  Found run();

private:
  void place();
  uint64_t address(uint32_t root, uint32_t slot) const;
  std::pair<uint32_t, uint32_t> cellsOf(uint64_t begin, uint64_t bytes) const;
  void begin(const format::Entry &entry);
  bool isParameter(uint32_t root) const;
  bool isOtherVersion(const Cell &cell, const format::Run &run, bool copies) const;
  bool adds(const Cell &cell, const format::Run &run, format::Access access) const;
  Found leavesUnread(const format::Run &run, uint32_t n, const Placed &placed, const Cell &cell) const;
  Found ofOtherBatch(const format::Run &run, uint32_t n, const Placed &placed, const Cell &cell) const;
  Found lacksSummand(const format::Run &run, uint32_t n, const Placed &placed, const Cell &cell);
  void findSums();
  void findJoining();
  Found readUnreduced(const format::Run &run, uint32_t n, const std::vector<Placed> &list) const;
  void findCopies();
  void noteCopied(const format::Run &run, uint32_t n, const Placed &placed, uint32_t cell);
  Found copiesAreNew() const;
  void findMicrobatches(const format::Entry &entry);
  uint32_t withSummand(uint32_t set, int64_t microbatch);
  uint32_t broughtBack(const format::Run &run, uint32_t root) const;
  int64_t batchOf(const format::Run &run) const { return run.microbatch / int64_t(bundle.manifest.microbatches); }
  Counterexample otherVersion(const format::Run &run, uint32_t n, const Cell &cell) const;
  Found step(const format::Run &run, uint32_t n);
  bool seen(uint32_t queue, uint32_t other, uint32_t time) const;
  Found withinGroup(const format::Run &run, uint32_t n, const std::vector<Placed> &list);
  Found access(const format::Run &run, uint32_t n, const std::vector<Placed> &list);
  void synchronise(const format::Run &run, const format::Instruction &it);
  Found overlaps(const format::Run &run, uint32_t n, const std::vector<Placed> &list);
  Found read(const format::Run &run, uint32_t n, const Placed &placed, uint64_t &name);
  Found write(const format::Run &run, uint32_t n, const Placed &placed, uint64_t name);
  uint32_t wholeSlots(uint32_t root) const;
  Found holdsItsOwn(const format::Entry &entry, uint32_t root, uint32_t slot, std::pair<uint32_t, uint32_t> range);
  Found receivedIsRead();
  Found readsApart(const format::Run &run, uint32_t n, std::pair<uint32_t, uint32_t> range);
  Found end(const format::Entry &entry);
  uint64_t nameOfCells(uint64_t name, uint32_t begin, uint32_t end) const;
  int64_t indexOf(const ByteAccess &access, const format::Run &run) const;
  std::string value(uint32_t root, int64_t index) const;
  Counterexample stale(const format::Run &run, uint32_t n, const Placed &placed, uint32_t cell) const;
  Counterexample race(const format::Run &run, uint32_t n, const Placed &placed, const Definition &other) const;
  Counterexample early(const format::Run &run, uint32_t n, const Placed &placed, const Definition &reader) const;
  std::string line(const Definition &at) const { return describeStep(bundle, rank, *at.run, at.n); }

  const format::Bundle &bundle;
  uint32_t rank;
  const format::Program &program;
  Lineage &lineage;
  std::vector<uint64_t> borders;                        ///< cell i is [borders[i], borders[i + 1])
  std::vector<std::vector<std::vector<Placed>>> placed; ///< [block][instruction]
  std::vector<std::pair<uint32_t, Placed>> roots;       ///< state and hyperparameters: buffer, whole slots

  std::vector<bool> sums; ///< [buffer]: several runs make its value, each adds to the one before
  std::vector<std::pair<const format::Run *, uint32_t>>
      taken; ///< [buffer]: the run that has read it last, and its summands then

  std::vector<bool> joining; ///< [comm]: ranks of several programs
  std::set<uint64_t> copies; ///< tags
  std::vector<Copied> copied;
  std::vector<SummandSet> sets;                           ///< of summands, each once
  std::map<std::pair<uint32_t, int64_t>, uint32_t> grown; ///< the set that one becomes by a microbatch
  std::vector<bool> own;                                  ///< [block]: it computes with values of one microbatch
  std::map<int64_t, std::vector<int64_t>>
      computed;                 ///< [batch]: microbatches of which the entry computes something of their own
  std::array<int64_t, 3> whole; ///< the set, batch and microbatch that were last found to lack none

  std::vector<Cell> cells;
  bool versioned = false; ///< the entry updates parameters several times
  std::vector<Definition> definitions;
  std::array<Clock, format::maxQueues> now;                       ///< vector clock of each queue
  std::array<std::vector<Definition>, format::maxQueues> history; ///< [queue][time - 1]
  std::vector<std::vector<Clock>> events;                         ///< [event][slot]
  uint64_t groupLeft = 0;  ///< communications of the current group that have not been stepped over
  uint32_t groupBegan = 0; ///< time of its queue before it
  std::vector<std::pair<uint32_t, std::pair<uint32_t, uint32_t>>>
      groupReads; ///< of its collectives: instruction, cells
  /// Results of communication by block and instruction: read in any run of any entry.
  std::map<std::pair<uint32_t, uint32_t>, Definition> received;
  std::map<uint32_t, std::vector<uint32_t>> resultsOf; ///< of a block's instructions: whose result theirs is a part of
};

/// Begin of the host space among addresses; no arena reaches it.
inline constexpr uint64_t hostBase = uint64_t(1) << 60;

} // namespace par::verify
