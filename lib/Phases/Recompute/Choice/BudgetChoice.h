#pragma once

#include "Cutting.h"

#include "par/Phases/Recompute/Recompute.h"

namespace par {

/// The cheapest choice of what the stages on the same ranks recompute, or move to the host's memory, for a number of
/// bytes at their peak.
///
/// Each place of a backward is a peak of the solver's problem (Cutting.h). It knows only the highest ones: as long as
/// a choice is above the bytes at another place, that one is added, and the choice made again. A choice that is within
/// the bytes at all places is then as good as one for which all had been known.
///
/// Several cuttings are tried, and the cheapest that fits is taken.
class BudgetChoice {
public:
  struct Outcome {
    KeptValues kept;
    int64_t bytes = 0;      ///< at the peak, of this choice
    int64_t ns = 0;         ///< lost for one microbatch: recomputed, and copied without compute beside
    int64_t unhiddenNs = 0; ///< of `ns`, the copies
    int64_t minNs = 0;      ///< that no choice of these cuttings is below
    bool fits = true;       ///< else the choice with the lowest peak
  };

  /// `stages` must outlive it, and not change before the last call. `moves`: values may go to the host's memory.
  BudgetChoice(llvm::ArrayRef<StagePair> stages, const CostTable &costs, bool moves);

  /// Without recomputation, all on the device.
  Outcome saveAll() const;
  /// Bytes that every choice keeps on the device at the begin of a backward, of the stage for which these are most: a
  /// minimum cut of the forward between its arguments and the residuals, for each microbatch in flight.
  int64_t getBoundBytes() const;
  /// The cheapest choice of one microbatch for each price of a byte. The stages are not cut into segments, so that
  /// figures of equal layers add up; which of these backward has at once is left out.
  std::vector<RecomputePoint> findFront() const;
  /// The cheapest choice of at most so many bytes at the peak.
  Outcome choose(int64_t bytes) const;

private:
  std::vector<size_t> levels() const;
  Cutting cut(size_t level) const;
  std::optional<Outcome> solveOnce(Cutting &cutting) const;
  std::optional<Outcome> solve(Cutting &cutting, int64_t bytes, int64_t enough, int64_t &minNs) const;
  Outcome findSmallest() const;

  llvm::ArrayRef<StagePair> stages;
  const CostTable &costs;
  bool moves;
  std::vector<Segments> segments;                       ///< by stage
  std::vector<std::vector<std::vector<unsigned>>> cuts; ///< by stage, the lowest peak first
};

} // namespace par
