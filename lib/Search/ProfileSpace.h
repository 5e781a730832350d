#pragma once

#include "par/Search/Search.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace par {

/// Candidates whose degree and samples were profiled.
struct ProfiledSpace {
  std::vector<SearchedPlan> plans; ///< with estimates
  std::vector<int64_t> bounds;     ///< of them; INT64_MAX: it cannot fit
  int64_t boundNs = 0;             ///< the least of these, and of the bounds of what was not profiled
  size_t left = 0;                 ///< candidates that were not profiled
};

/// Told before each further profile: the plan with the best estimate of those that fit, and what none of those without
/// a profile is below.
using BestSoFar = llvm::function_ref<void(const SearchedPlan &best, int64_t bound)>;

/// Profiles degrees and samples, that with the lowest bound first, until no bound is below the best estimate by more
/// than the tolerance in 1/1000. `everything`: profiles all.
ProfiledSpace profileSpace(std::vector<Candidate> candidates, Profiler &profiler, const Space &space,
                           const Machine &machine, std::optional<uint64_t> limit, int64_t tolerance, bool everything,
                           BestSoFar tell);

} // namespace par
