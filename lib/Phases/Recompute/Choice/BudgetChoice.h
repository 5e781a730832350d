#pragma once

#include "CuttingSearch.h"

#include "par/Phases/Recompute/Recompute.h"

namespace par {

/// The cheapest choice of what the stages on the same ranks recompute, or move to the host's memory, for a number of
/// bytes at their peak.
///
/// Several cuttings into segments are tried, and the cheapest choice that fits is taken. The cutting whose bound is
/// lowest is gone on with (CuttingSearch.h), until no bound is below the best choice.
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
  /// The cheapest choice of at most so many bytes at the peak; if there is none, the smallest.
  Outcome choose(int64_t bytes) const;
  /// The choice with the lowest peak.
  Outcome findSmallest() const;

private:
  using StageCuts = std::vector<std::vector<unsigned>>; ///< by stage
  void addCuttings(llvm::function_ref<std::vector<std::vector<unsigned>>(const Segments &)> find);
  Cutting cut(const StageCuts &cuts) const;
  Outcome outcomeOf(const Cutting &cutting, const RecomputeChoice &choice) const;

  llvm::ArrayRef<StagePair> stages;
  const CostTable &costs;
  bool moves;
  std::vector<Segments> segments; ///< by stage
  std::vector<StageCuts> cuttings;
};

} // namespace par
