// The figures of a machine, and which of its ranks share a host; par/Costs/CostTable.h predicts times by them.
#pragma once

#include "par/Base/MeasuredRows.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace par {

/// The ranks of a collective, by the hosts that they are on, and by wider units of hosts.
struct RankGroup {
  RankGroup(int64_t members = 1) : members(members), fewest(members) {} // all on one host
  /// Whether it is on more units or, on as many, has fewer members on one; wider units count first.
  bool isWiderThan(const RankGroup &other) const;

  int64_t members = 1;
  int64_t hosts = 1;
  int64_t fewest = 1; ///< on the host that has fewest of them
  /// The same of units that hold several hosts (racks), innermost first; a unit is 1 where all members are in one.
  struct Units {
    int64_t count = 1, fewest = 1;
    bool operator==(const Units &) const = default;
  };
  static constexpr size_t maxWider = 2;
  std::array<Units, maxWider> wider;
};

/// The links between units of hosts, beyond those between hosts.
struct WiderLink {
  int64_t ranks = 0; ///< of each unit that it joins
  int64_t link = 1, latency = 0, share = 0;
};

/// How a matmul is cut over a device: the units that work at once take a tile of the result each, wave after wave.
struct MatmulWaves {
  int64_t units = 0; ///< 0: matmuls run at the peak whatever their shape
  int64_t rows = 128, columns = 128, depth = 64;
  int64_t overhead = 0; ///< ns of a wave beside its operations
};

/// A hardware file: the figures from which costs are predicted. All are integers, so that decisions are the same on
/// every machine that compiles.
struct Hardware {
  std::string name;
  std::string source; ///< where the figures come from
  std::string isa;    ///< instruction set of its devices, "sm_80" or "x86-64-v3"; empty: not said
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
  /// The part of compute, in 1/1000, that communication within a host, and between hosts, takes while it runs.
  int64_t share = 0, hostShare = 0;
  std::vector<WiderLink> wider;
  /// Names of the levels, innermost first, where the file has `levels`.
  std::vector<std::string> levels;

  MatmulWaves waves;
  /// The part of the matmul peak, in 1/1000, that attention on the chip reaches, forward and backward, and a
  /// convolution.
  int64_t attention = 1000, attentionBackward = 1000, convolution = 1000;
  int64_t kernelFlops = 0;    ///< FLOP per microsecond of loops over elements; 0: as f32
  int64_t kernelOverhead = 0; ///< ns of a kernel beside launch, operations and bytes
  MeasuredRows measured;

  /// `cores: host` in the file: as many as the machine has that predicts. No decision may depend on it.
  static constexpr int64_t HostCores = -1;
  /// The same with the cores of this machine (those that this process may use) for HostCores.
  Hardware onThisHost() const;

  /// Whether `isa` is meant for a GPU; that there is such a one is checked where code is made.
  bool isGpuIsa() const { return llvm::StringRef(isa).starts_with_insensitive("sm"); }

  /// Reads the YAML of a hardware file; `where` begins messages.
  static llvm::Expected<Hardware> parse(llvm::StringRef text, llvm::StringRef where);
  /// The hardware file of this name that ships with Par ("cpu"), or the file at this path.
  static llvm::Expected<Hardware> find(llvm::StringRef nameOrPath);

  int64_t peak(format::DType type) const;
  /// Ranks by their numbers in the world: hosts are filled one after the other.
  RankGroup groupOf(llvm::ArrayRef<int64_t> ranks) const;
  /// Whether ranks of different hosts have another link than those of one.
  bool hasHosts() const { return hostLink > 0; }
  int64_t hostOf(int64_t rank) const { return hasHosts() && ranks ? rank / ranks : 0; }
  /// The two ends of what ranks of `from` send to ranks of `to`, those that are farthest apart: each sends to the rank
  /// at its position or, if the numbers differ, to any. Neither list is empty.
  RankGroup endsOf(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) const;
};

} // namespace par
