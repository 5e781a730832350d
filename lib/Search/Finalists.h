// Which of the candidates that were estimated are compiled whole, one after the other.
#pragma once

#include "par/Search/Search.h"

namespace par {

/// Estimates err alike for candidates of one mesh, rules and schedule (launches and latencies of small models, cuts
/// beside layers): what the last trial of such a group took corrects the others.
class Finalists {
public:
  /// `plans`: by their estimates; they outlive this. `eachGroup`: the first of each group comes before the second of
  /// any, if its estimate is not beyond what a correction can bring back. `doubt`: an expected step
  /// may be so many times as long as that of the fastest trial. With some, a group of a pipeline has one number of
  /// microbatches: each has launches, transfers and cuts of its own.
  Finalists(llvm::ArrayRef<SearchedPlan> plans, bool eachGroup, double doubt = 1);

  /// The next one to try, which counts as tried from now on; nothing: all are tried, or, unless `must`, none of the
  /// others is expected to be faster than the fastest so far.
  std::optional<size_t> next(bool must);
  /// The step of a trial; nothing: it does not fit or compile. The others of its group come last then.
  void note(size_t index, std::optional<int64_t> ns);
  /// Trials that do not fit or compile.
  size_t misfits() const { return misfitCount; }
  /// The plans without a trial, by their estimates.
  std::vector<SearchedPlan> untried() const;

private:
  struct Group {
    bool isTried;
    bool isSpoiled = false; ///< a trial of it did not fit
    double factor = 1;      ///< of the last trial's step to its estimate
  };
  std::optional<size_t> nextGroup() const;
  std::optional<size_t> nextExpected() const;
  double expected(size_t index) const;

  llvm::ArrayRef<SearchedPlan> plans;
  const double doubt;
  std::vector<size_t> groupOf; ///< of each plan
  std::vector<bool> tried;     ///< or left out by who asked for the next one
  std::vector<bool> noted;
  size_t misfitCount = 0;
  std::vector<Group> groups;
  std::optional<int64_t> best; ///< ns of the fastest trial
};

} // namespace par
