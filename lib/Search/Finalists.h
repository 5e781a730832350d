// Which of the candidates that were estimated are compiled whole, one after the other.
#pragma once

#include "par/Search/Search.h"

namespace par {

/// Estimates err alike for candidates of one mesh, rules and schedule (launches and latencies of small models, cuts
/// beside layers): what the last trial of such a group took corrects the others. So do bytes: after a trial that does
/// not fit, plans come first that would fit if they, too, needed so many times their estimate.
///
///     limit 78 GiB, estimates 70, 60, 40:   the first one takes 100, 1.43 times as much:   40 is next, not 60
class Finalists {
public:
  /// `plans`: by their estimates; they outlive this. `eachGroup`: the first of each group comes before the second of
  /// any, if its estimate is not beyond what a correction can bring back. `doubt`: an expected step
  /// may be so many times as long as that of the fastest trial. With some, a group of a pipeline has one number of
  /// microbatches: each has launches, transfers and cuts of its own. `limit`: bytes of a rank.
  Finalists(llvm::ArrayRef<SearchedPlan> plans, bool eachGroup, double doubt = 1,
            std::optional<uint64_t> limit = std::nullopt);

  /// The next one to try, which counts as tried from now on; nothing: all are tried, or, unless `must`, none of the
  /// others is expected to be faster than the fastest so far.
  std::optional<size_t> next(bool must);
  /// The figures of a trial; nothing: it does not compile, and the others of its group come last.
  void note(size_t index, const std::optional<Estimate> &played);
  /// Trials that do not fit or compile.
  size_t misfits() const { return misfitCount; }
  /// The plans without a trial, by their estimates; under a limit without those that would err beyond it as trials did.
  std::vector<SearchedPlan> untried() const;

private:
  struct Group {
    bool isTried;
    bool isSpoiled = false; ///< a trial of it did not compile
    double factor = 1;      ///< of the last trial's step to its estimate
  };
  std::optional<size_t> nextGroup() const;
  std::optional<size_t> nextExpected(bool must) const;
  double expected(size_t index) const;
  /// Than the fastest trial, as far as is expected.
  bool mayBeFaster(size_t index) const;
  /// Whether it would not fit if its estimate of bytes erred as those of the trials that did not fit.
  bool mayMisfit(size_t index) const;

  llvm::ArrayRef<SearchedPlan> plans;
  const double doubt;
  std::vector<size_t> groupOf; ///< of each plan
  std::vector<size_t> kinOf;   ///< of each plan: those whose bytes err alike, of a schedule, rules, and zero 3 or not
  std::vector<bool> tried;     ///< or left out by who asked for the next one
  std::vector<bool> noted;
  const std::optional<uint64_t> limit;
  size_t misfitCount = 0;
  size_t misfitsInRow = 0;     ///< that compiled: each asks for more room to spare in the next one
  double bytes = 0;            ///< of such a trial over its estimate, the largest; 0: there was none
  std::vector<double> leanest; ///< of kin, the same over what its estimate leaves after recomputation
  std::vector<Group> groups;
  std::optional<int64_t> best; ///< ns of the fastest trial
};

} // namespace par
