// The least time that recomputation takes under a limit of memory.
#pragma once

#include "par/Search/Candidate.h"
#include "par/Search/Profile.h"

#include "llvm/ADT/ArrayRef.h"

namespace par {

/// At the begin of a backward a rank holds what stays and all that its forwards keep for their backwards. With the
/// share x of the model, n microbatches of it and a limit of L bytes, each keeps at most (L - x stays) / n. At each
/// price p of a byte a choice that keeps `bytes` takes at least again + p (kept - bytes), so a microbatch takes
///
///     x work + max over p of  x (again + p (kept + stays / n)) - p L / n
class MemoryBound {
public:
  /// `limit`: bytes of a rank. All outlive this.
  MemoryBound(const Candidate &candidate, const ModelCost &cost, const Space &space, int64_t limit);

  /// ns that one microbatch recomputes at least, on a rank that has the whole model.
  double wholeNs() const;
  /// Microbatches whose saved values a stage holds at some time at least, if its chunks have any sizes.
  int64_t inFlight(int64_t stage) const;
  /// The step of stages, over all ways to deal the model to them: each waits `wait` ns, of the whole model, for what
  /// the stages before have of it, and has its share of `own` ns beside what it recomputes. At least `least`.
  double chainNs(double wait, double own, double least) const;

private:
  bool binds() const;
  double stays(const RankCost &part, int64_t held) const;
  /// ns for each microbatch of a part at a price, beside what is taken off for its limit.
  double priced(const RankCost &part, size_t price, int64_t held) const;
  /// A stage with so many microbatches has a share of at most (room + off) / (own + each), for each of these.
  struct Line {
    double off, each;
  };
  std::vector<Line> linesOf(int64_t held) const;
  bool isEnough(double step, double wait, double own, llvm::ArrayRef<std::vector<Line>> lines) const;

  const Candidate &candidate;
  const ModelCost &cost;
  const Space &space;
  const double limit;
  const RankCost all;
};

} // namespace par
