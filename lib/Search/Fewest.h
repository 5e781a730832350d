// The fewest ranks that a model fits.
#pragma once

#include "Trials.h"

namespace par {

/// Looks for the least number of ranks among those that a user may have: parts of the asked-for one and powers of two,
/// or, if that fits no plan, its multiples by powers of two and larger powers of two.
///
///     24 ranks: 1, 2, 3, 4, 6, 8, 12, 16         no plan: 32, 48, 64, 96, ...
class FewestFinder {
public:
  /// All outlive this. `limit`: bytes of a rank. `modelNodes`: of the whole model.
  FewestFinder(const Space &space, Profiler &profiler, const Machine &machine, const Trials &trials,
               std::optional<uint64_t> limit, size_t modelNodes)
      : space(space), profiler(profiler), machine(machine), trials(trials), limit(limit), modelNodes(modelNodes) {}

  /// The fewest ranks below the asked-for number, or above it, that fit; nothing: none does.
  std::optional<FewestRanks> find(bool below);
  /// The fewest ranks that may do, but were not compiled since the model is large; 0: none.
  int64_t mayDo() const { return unsure; }
  /// Plans that were compiled for it.
  size_t compiled() const { return compiledCount; }

private:
  std::vector<int64_t> counts(bool below) const;
  std::optional<SearchedPlan> fitOn(int64_t ranks);
  /// Candidates whose parameters, gradients and states may fit.
  std::vector<Candidate> mayFit(const Space &its) const;
  void profileLeanest(const std::vector<Candidate> &candidates);
  std::optional<PlayedTrial> compile(const Space &its, const SearchedPlan &plan);
  std::optional<SearchedPlan> compileLeanest(const Space &its, std::vector<SearchedPlan> plans);
  /// Whether the estimate is so far below the limit that a compilation would be, too.
  bool isSure(const SearchedPlan &plan) const;

  const Space &space;
  Profiler &profiler;
  const Machine &machine;
  const Trials &trials;
  const std::optional<uint64_t> limit;
  const size_t modelNodes;
  size_t compiledCount = 0;
  int64_t unsure = 0; ///< the fewest ranks of those that may do, by estimates that are not far below the limit
};

} // namespace par
