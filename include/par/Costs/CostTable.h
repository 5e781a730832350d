// What work takes on a machine: the one source of predicted times.
#pragma once

#include "par/Base/Hardware.h"
#include "par/Base/WorkShapes.h"

namespace par {

/// Where a predicted time comes from, the surest first.
enum class CostSource : uint8_t {
  Measured, ///< a row of the hardware file is of this very work
  Table,    ///< the model's, corrected by rows near it
  Peak,     ///< the model's alone: peaks, waves, links
};
llvm::StringRef toString(CostSource source);

/// A predicted time.
struct Cost {
  int64_t ns = 0;
  CostSource source = CostSource::Peak;
  int64_t reach = 0; ///< of Table: how far the nearest row is, in 1/1000 of a doubling of the farthest dim
};

/// A way between two ranks.
struct Link {
  int64_t latency = 0; ///< ns of one message
  int64_t rate = 1;    ///< bytes per microsecond
};

/// Answers what work takes by a hardware file. All answers are integers, and equal on every machine that compiles.
/// Answers about local work include the launch; those about communication do not.
class CostTable {
public:
  CostTable(Hardware hardware = {});
  /// Of the hardware file of this name or path: see Hardware::find.
  static llvm::Expected<CostTable> find(llvm::StringRef nameOrPath);

  const Hardware &hardware() const { return machine; }

  /// The larger of computing at the format's peak and moving the bytes.
  Cost matmul(const MatmulShape &shape) const;
  /// One kernel that keeps scores on the chip; `bytes` are read and written.
  Cost attention(const AttentionShape &shape, int64_t bytes) const;
  /// Two matmuls (backward five) and a softmax between them, whose scores go through memory.
  Cost attentionInMemory(const AttentionShape &shape) const;
  Cost convolution(const ConvolutionShape &shape, int64_t bytes) const;
  /// A loop over elements, generated or builtin, that reads and writes `bytes`.
  Cost kernel(int64_t bytes, int64_t flops = 0) const;
  /// Work of which no shape is known: `flops` of products at the peak, or `bytes` read and written.
  Cost local(int64_t flops, int64_t bytes, format::DType type = format::DType::F32) const;
  /// ns of operations that join a kernel which is there anyway, and move no bytes of their own.
  int64_t operations(int64_t flops) const;
  /// ns to issue an instruction that has no work.
  int64_t launch() const;
  /// `bytes` read and written within a device's memory.
  Cost copy(int64_t bytes) const { return kernel(bytes); }
  /// `bytes` between a device and its host's memory.
  Cost hostCopy(int64_t bytes) const;

  /// A collective of a group; `bytes` is the instruction's n. Ring and recursive halving move all_reduce 2 (P-1)/P,
  /// all_gather, reduce_scatter and all_to_all (P-1), broadcast and reduce 1 times the bytes (Thakur et al. 2005), in
  /// log2 P messages, all_reduce in twice as many. A ring passes through all members of a host before it leaves it.
  /// There are as many rings as each host has members, each over another member's link (NCCL's channels): between hosts
  /// the bytes use the links of the host with the fewest members, while they move within the other hosts. In an
  /// all_to_all each rank sends over its own link to other hosts.
  Cost collective(format::CollKind kind, int64_t bytes, const RankGroup &group) const;
  /// The part of it that bytes do not change, ns. Collectives of one group take it once: they are one launch, whose
  /// messages go side by side (NCCL's aggregated operations).
  int64_t collectiveLatency(format::CollKind kind, const RankGroup &group) const;
  /// `bytes` from one rank to another; `ends` are the two.
  Cost send(int64_t bytes, const RankGroup &ends) const;
  /// The link that a send takes.
  Link link(const RankGroup &ends) const;

private:
  Hardware machine;
};

} // namespace par
