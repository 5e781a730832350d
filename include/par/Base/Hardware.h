// The figures of a machine, and which of its ranks share a host; par/Costs/CostTable.h predicts times by them.
#pragma once

#include "par/format/Program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace par {

/// The ranks of a collective, by the hosts that they are on.
struct RankGroup {
  RankGroup(int64_t members = 1) : members(members), fewest(members) {} // all on one host
  /// Whether it is on more hosts or, on as many, has fewer members on one.
  bool isWiderThan(const RankGroup &other) const {
    return std::pair(hosts, -fewest) > std::pair(other.hosts, -other.fewest);
  }

  int64_t members = 1;
  int64_t hosts = 1;
  int64_t fewest = 1; ///< on the host that has fewest of them
};

/// A hardware file: the figures from which costs are predicted. All costs are integer nanoseconds, so that decisions
/// are the same on every machine that compiles.
struct Hardware {
  std::string name;
  int64_t f32 = 1, f64 = 1, bf16 = 0, f16 = 0; ///< FLOP per microsecond in matmuls; 0: as f32
  int64_t memory = 1;                          ///< bytes per microsecond
  int64_t link = 1;                            ///< bytes per microsecond between two ranks
  int64_t host = 0;     ///< bytes per microsecond between a device and its host's memory; 0: as memory
  int64_t latency = 0;  ///< ns of one message
  int64_t launch = 0;   ///< ns to issue one instruction
  bool overlap = true;  ///< communication runs beside compute; otherwise it takes the rank's one engine
  int64_t cores = 0;    ///< of a host, which its ranks share; 0: each rank has its own; HostCores: see there
  int64_t ranks = 0;    ///< of a host; 0: all ranks are on one
  int64_t capacity = 0; ///< bytes of a rank's device; 0: not bounded
  int64_t reserve = 0;  ///< bytes of them that the runtime and its libraries take
  /// Between ranks of different hosts, for each rank while all ranks of its host send: its own adapter, or its share of
  /// one; 0: as within a host.
  int64_t hostLink = 0, hostLatency = 0;

  /// `cores: host` in the file: as many as the machine has that predicts. No decision may depend on it.
  static constexpr int64_t HostCores = -1;
  /// The same with the cores of this machine (those that this process may use) for HostCores.
  Hardware onThisHost() const;

  /// Reads the YAML of a hardware file; `where` begins messages.
  static llvm::Expected<Hardware> parse(llvm::StringRef text, llvm::StringRef where);
  /// The hardware file of this name that ships with Par ("cpu"), or the file at this path.
  static llvm::Expected<Hardware> find(llvm::StringRef nameOrPath);

  int64_t peak(format::DType type) const;
  /// Ranks by their numbers in the world: hosts are filled one after the other.
  RankGroup groupOf(llvm::ArrayRef<int64_t> ranks) const;
  int64_t hostOf(int64_t rank) const { return hostLink && ranks ? rank / ranks : 0; }
  /// The two ends of what ranks of `from` send to ranks of `to`, those that are farthest apart: each sends to the rank
  /// at its position or, if the numbers differ, to any. Neither list is empty.
  RankGroup endsOf(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) const;
};

} // namespace par
