// Plays emitted programs in simulated time.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/format/Bundle.h"

namespace par {

/// One instruction, or one group, on one rank, with its simulated time. For communication it is the time of the
/// transfer, without the wait for peers before it.
struct PlayedInstruction {
  uint32_t rank; ///< the lowest of its class
  uint32_t queue;
  uint32_t block, instruction; ///< of the rank's program
  uint32_t run;                ///< of the entry
  bool communication = false;  ///< or a copy between device and host
  /// Where its time comes from: the least sure of a group's.
  CostSource source = CostSource::Measured;
  uint16_t share = 0;              ///< of compute, in 1/1000, that it takes while it runs, as communication
  int64_t start = 0, duration = 0; ///< ns
  int64_t waited = 0;              ///< ns before the start that it could have run had a core been free
};

/// Time of a rank in ns; the four add up to the step.
struct RankTime {
  int64_t compute = 0;       ///< local instructions
  int64_t communication = 0; ///< transfers while no local instruction runs: exposed
  int64_t core = 0;          ///< waiting for a core while other ranks have them all
  int64_t idle = 0;          ///< none of these: the bubble, and waiting for slower peers
};

/// Live bytes of a role's arena (state included) from `time` on.
struct MemorySample {
  int64_t time, bytes;
};

/// The life of a value in a slot of a buffer of the arena: while it is written, kept and read.
struct BufferLife {
  uint32_t buffer;
  uint64_t offset;    ///< of the slot, in bytes
  int64_t begin, end; ///< ns
};

struct Simulation {
  int64_t step = 0;                            ///< ns of the entry
  int64_t calls = 1;                           ///< batches that it takes: each takes a share of its time
  int64_t cores = 0;                           ///< of a host, if its ranks share them
  std::vector<RankTime> ranks;                 ///< per rank
  std::vector<uint32_t> classOf;               ///< per rank; ranks of a class play the same at the same times
  std::vector<PlayedInstruction> instructions; ///< of one rank of each class, class by class, in issue order
  std::vector<size_t> classBegins;             ///< where each class begins in them, and their end
  /// The instructions of a longest chain, as indices of `instructions` in the order of time: each begins when the one
  /// before ends, because it needs its result, its engine or its core. Together they take the step.
  std::vector<uint32_t> critical;
  /// Per role, on its first rank. A bound on what is touched at once; the arena may be larger by
  /// fragmentation.
  std::vector<std::vector<MemorySample>> memory;

  /// In issue order; their `rank` is that which stands for the class.
  llvm::ArrayRef<PlayedInstruction> instructionsOf(uint32_t rank) const;
  /// Shares of all ranks' time, in 1/1000.
  int64_t computePermille() const, bubblePermille() const, communicationPermille() const, corePermille() const;
  /// Shares of the instructions' time, in 1/1000, whose costs are measured, from a table, and only of peaks: see
  /// CostSource.
  std::array<int64_t, 3> sourcePermille() const;
  /// The largest sample of a role.
  int64_t peakLive(uint32_t role) const;
};

/// Lives of all buffers that are no state, of one rank's instructions in issue order.
std::vector<BufferLife> findLives(const format::Program &program, const format::Entry &entry,
                                  llvm::ArrayRef<PlayedInstruction> instructions);

/// `Exact`: one rank of each class of an equitable partition is played, which gives all ranks the times that they have
/// without (RankPartition.h). `None`: every rank is played, to compare with.
enum class Folding { Exact, None };

/// Simulates the entry of every rank's program. Queues run in order. A wait ends with the last signal issued before it.
/// Communication starts when all participants have reached it (a group as one). Local instructions take one engine a
/// rank; on hardware without overlap, communication takes that engine too.
///
/// Expects a bundle that par-verify accepts, and a number of cores. Fails on an entry that no program has, and on a
/// deadlock.
llvm::Expected<Simulation> simulate(const format::Bundle &bundle, llvm::StringRef entry, const CostTable &costs,
                                    Folding folding = Folding::Exact);

} // namespace par
