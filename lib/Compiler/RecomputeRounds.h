#pragma once

#include "par/Phases/Recompute/Recompute.h"
#include "par/Plan/Model/Plan.h"
#include "par/format/Bundle.h"

namespace par {

/// Goes back from Memory to Recompute while a role needs more bytes than the limit, at most three times. Bytes saved
/// less do not all lower the peak, so the second time they are scaled by what the first ones brought; the third time
/// as much as possible is recomputed:
///
///     limit 6, peak 10                excess 4
///     peak 8: 4 bytes brought 2       excess 9 (8, and an eighth)
///     peak 7                          excess: all
class RecomputeRounds {
public:
  /// `limit`: nothing if Recompute has no bytes to reach.
  explicit RecomputeRounds(std::optional<uint64_t> limit) : limit(limit) {}

  bool isBounded() const { return limit.has_value(); }
  /// Sets the plan's excess of each role above the limit for another round. False if every role is within the limit or
  /// has the smallest choice, or after three rounds.
  bool start(const format::Bundle &bundle, llvm::ArrayRef<StageRecompute> outcomes, PlanRecompute &recompute);

private:
  int64_t next(int64_t excess, uint64_t first, uint64_t peak) const;

  std::optional<uint64_t> limit;
  int rounds = 0;
  std::map<std::string, uint64_t> firstPeaks; ///< by role
};

} // namespace par
