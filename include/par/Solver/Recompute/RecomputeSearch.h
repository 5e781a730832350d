// Solves a recompute problem whose peaks become known one after another.
#pragma once

#include "par/Solver/Recompute/RecomputeChoice.h"

#include <memory>
#include <optional>

namespace par {

/// The search for the cheapest choice within the peaks that were added. With another peak prices begin where they were,
/// and the bound never falls.
///
///     RecomputeSearch search(problem);
///     search.addPeak(first) && search.addPeak(second);
///     search.improve(enough);                     // prices: a bound, and perhaps a choice
///     if (search.getBound() + search.getTolerance() < enough && !search.isGoodEnough())
///       search.finish(enough);                    // branch and bound
class RecomputeSearch {
public:
  /// A choice that is so much above the bound, or less, is good enough. 0 ns for fewer than 1,024 values; of a larger
  /// problem a thousandth of the time of all values.
  static int64_t toleranceOf(const RecomputeProblem &problem);

  /// Peaks and budget of `problem`, which must outlive it, are not read.
  explicit RecomputeSearch(const RecomputeProblem &problem);
  ~RecomputeSearch();

  /// False if no choice is within the peak's limit.
  bool addPeak(BytePeak peak);
  /// The fewest bytes of the peak that was added last, and its limit, if addPeak() was false.
  std::pair<int64_t, int64_t> getMinimum() const;
  /// Raises the bound by prices, until it is `enough` or a choice is good enough.
  void improve(int64_t enough);
  /// Searches for the cheapest choice below `enough`. Its `minCost` is its cost if it is optimal. None if there is
  /// none, or none that is better by the tolerance; if the search gave up without one, the cost is -1.
  std::optional<RecomputeChoice> finish(int64_t enough);

  int64_t getBound() const;
  int64_t getTolerance() const;
  /// The cheapest choice so far within all peaks.
  const std::optional<RecomputeChoice> &getBest() const;
  bool isGoodEnough() const { return getBest() && getBest()->cost - getBound() <= getTolerance(); }

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace par
