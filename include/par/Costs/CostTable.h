// The one source of predicted times: work in, ns out, by the figures of a hardware file.
#pragma once

#include "par/Base/Hardware.h"
#include "par/Base/WorkShapes.h"

namespace par {

/// The origin of a predicted time, the surest first.
enum class CostSource : uint8_t {
  Measured, ///< a row of the hardware file is of this very work
  Table,    ///< the model's, corrected by rows near it
  Peak,     ///< only the model's: peaks, waves, links
};
llvm::StringRef toString(CostSource source);

/// A predicted time.
struct Cost {
  int64_t ns = 0;
  CostSource source = CostSource::Peak;
  int64_t reach = 0; ///< of Table: how far the nearest row is, in 1/1000 of a doubling of the farthest dim
};

/// The ranks that meet in a communication, as predicted, ns.
struct Arrivals {
  int64_t computed = 0; ///< by one since it last met another, at most
  int64_t waited = 0;   ///< by the first one for the last one
  int64_t apart = 0;    ///< the last one after the last but one
};

/// A way between two ranks.
struct Link {
  int64_t latency = 0; ///< ns of one message
  int64_t rate = 1;    ///< bytes per microsecond
};

/// Answers what work takes by a hardware file: a model of physical figures, corrected by rows that were measured near
/// the shape that is asked for (lib/Costs/Nearby.h). All answers are integers, and equal on every machine that
/// compiles. Answers about local work include the launch; those about communication do not.
class CostTable {
public:
  CostTable(Hardware hardware = {}) : machine(std::make_shared<const Hardware>(std::move(hardware))) {}
  /// The table of the hardware file of this name or path: see Hardware::find.
  static llvm::Expected<CostTable> find(llvm::StringRef nameOrPath);

  const Hardware &hardware() const { return *machine; }

  /// By waves of tiles, where the file has them; else the larger of computing at the peak and moving the bytes.
  Cost matmul(const MatmulShape &shape) const;
  /// One kernel that keeps scores on the chip; `bytes` are read and written.
  Cost attention(const AttentionShape &shape, int64_t bytes) const;
  Cost convolution(const ConvolutionShape &shape, int64_t bytes) const;
  /// A loop over elements, generated or builtin, that reads and writes `bytes`.
  Cost kernel(int64_t bytes, int64_t flops = 0) const;
  /// Work of which no shape is known: `flops` of matmuls at the peak, or `bytes` read and written.
  Cost local(int64_t flops, int64_t bytes, format::DType type = format::DType::F32) const;
  /// ns of operations that join a kernel which is there anyway, and move no bytes of their own.
  int64_t operations(int64_t flops) const;
  /// ns to issue an instruction that has no work.
  int64_t launch() const;
  /// `bytes` read and written within a device's memory.
  Cost copy(int64_t bytes) const;
  /// `bytes` between a device and its host's memory.
  Cost hostCopy(int64_t bytes) const;

  /// An input of a step, or an output (`fetch`).
  Cost feed(bool fetch, int64_t bytes) const;

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
  /// The part of compute, in 1/1000, that communication of a group takes while it runs.
  int64_t share(const RankGroup &group) const;
  /// ns that a communication takes longer than one of ranks that come at once.
  int64_t meeting(const Arrivals &arrivals) const;
  /// 1/1000 of the time of one, that matmuls (or kernels) take while that many processes of a host run them at once.
  int64_t together(bool matmul, int64_t processes) const;

private:
  std::shared_ptr<const Hardware> machine; // tables are copied often
};

} // namespace par
