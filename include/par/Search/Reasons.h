// Why each key that a search has filled has its value.
#pragma once

#include "par/Search/Search.h"

namespace par {

/// A key each, of a result with a plan: the best plan with another value, one that was played before one that was not.
std::vector<KeyReason> explainKeys(const SearchResult &result);

/// By how many percent a plan is slower than another one, of figures of one kind: both played, or both estimated.
double slowerPercent(const SearchedPlan &plan, const SearchedPlan &best);

} // namespace par
