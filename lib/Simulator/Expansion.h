// The instructions of one rank of each class as nodes of one graph.
#pragma once

#include "RankPartition.h"
#include "par/Simulator/Simulator.h"

namespace par {

/// The nodes of one entry on the ranks that stand for the classes, in issue order of each rank, rank after rank.
struct Expansion {
  std::vector<PlayedInstruction> nodes;
  /// For each node, the nodes of the same rank that end before it: the previous one of its queue, and the signal that
  /// it awaits.
  std::vector<std::array<int64_t, 2>> before; ///< -1: none
  /// Nodes that happen at once (a collective's members, a send and its receive, groups that share one): the
  /// same number, that of one of them.
  std::vector<uint32_t> joint;
};

/// Fails on an entry that no program has.
llvm::Expected<Expansion> expandEntry(const format::Bundle &bundle, llvm::StringRef entry, const CostTable &costs,
                                      const RankPartition &partition);

/// Time of one instruction on its rank, while that many processes of its host compute.
Cost localCost(const format::Program &program, const format::Instruction &instruction, int64_t processes,
               const CostTable &costs);

/// Time of a communication in which these ranks take part, of a send and its receive two.
Cost communicationCost(const format::Instruction &instruction, const RankGroup &group, const CostTable &costs);

/// ns of a communication's messages, whatever their bytes.
int64_t latencyOf(const format::Instruction &instruction, const RankGroup &group, const CostTable &costs);

/// Whether an instruction copies between a device and its host's memory, which overlaps with compute.
bool crossesSpaces(const format::Program &program, const format::Instruction &instruction);

/// The critical instructions of an expansion that was played: see Simulation.
std::vector<uint32_t> findCritical(const Expansion &expansion, const Hardware &hardware);

/// Live bytes of a program's arena over the entry, for one rank's nodes.
std::vector<MemorySample> liveBytes(const format::Program &program, const format::Entry &entry,
                                    llvm::ArrayRef<PlayedInstruction> nodes);

} // namespace par
