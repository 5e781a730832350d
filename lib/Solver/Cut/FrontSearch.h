// Cuts by dynamic programming, which costs little and finds good ones to begin with.
#pragma once

#include "Downsets.h"

namespace par {

/// Cuts that are short by the closed form of 1f1b, (m - 1) * largest stage + all stages + transfers: of partial chains
/// it needs the Pareto front of (largest, sum) pairs. Gives the assignments of the last front, or of its best entry
/// with `narrow` (quick; only chains below `bound` count); none if no chain fits the limits.
std::vector<std::vector<unsigned>> searchFronts(const StageCutProblem &problem, const Downsets &downsets, bool narrow,
                                                int64_t bound);

/// The closed form of an assignment.
int64_t closedForm(const StageCutProblem &problem, const StageCut &cut);

} // namespace par
