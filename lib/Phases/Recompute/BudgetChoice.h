#pragma once

#include "Segments.h"
#include "StagePairs.h"

#include "par/Costs/CostTable.h"
#include "par/Solver/Recompute/RecomputeChoice.h"

namespace par {

/// The cheapest recomputation of the stages on the same ranks for a number of bytes at their peak.
///
/// Each forward is cut into segments (Segments.h). Values that cross a cut stay saved, so that backward recomputes one
/// segment at a time; the solver chooses among the others. The peak is at the begin of a backward: the values saved for
/// each microbatch in flight, and the residuals of the last segment, saved or not. So a value of the last segment
/// weighs nothing for the microbatch whose backward begins:
///
///     segment    0    1    last        in flight f
///     weight     f    f    f - 1       of a saved value's bytes
///
/// Several cuttings are tried, and the cheapest that fits is taken.
class BudgetChoice {
public:
  struct Outcome {
    std::vector<ValueSet> saved; ///< by stage
    int64_t bytes = 0;           ///< at the peak, of this choice
    int64_t ns = 0;              ///< recomputed for one microbatch
    int64_t minNs = 0;           ///< that no choice of these cuttings is below
    bool fits = true;            ///< else the choice with the lowest peak
  };

  /// `stages` must outlive it, and not change before the last call.
  BudgetChoice(llvm::ArrayRef<StagePair> stages, const CostTable &costs);

  /// Bytes at the peak if all residuals are saved.
  int64_t getAllBytes() const;
  /// Bytes that every choice saves at the begin of a backward, of the stage for which these are most: a minimum cut of
  /// the forward between its arguments and the residuals, for each microbatch in flight.
  int64_t getBoundBytes() const;
  /// The cheapest choice of at most so many bytes at the peak.
  Outcome choose(int64_t bytes) const;

private:
  struct Cutting;
  std::vector<size_t> levels() const;
  Cutting cut(size_t level) const;
  void addStage(Cutting &cutting, unsigned index, int64_t weight, int64_t lastWeight) const;
  std::optional<Outcome> solveOnce(Cutting &cutting) const;
  std::optional<Outcome> solve(Cutting &cutting, int64_t bytes, int64_t &minNs) const;
  Outcome findSmallest() const;
  int64_t peakOf(const Cutting &cutting, llvm::ArrayRef<ValueSet> saved) const;

  llvm::ArrayRef<StagePair> stages;
  const CostTable &costs;
  std::vector<Segments> segments;                       ///< by stage
  std::vector<std::vector<std::vector<unsigned>>> cuts; ///< by stage, the lowest peak first
};

} // namespace par
