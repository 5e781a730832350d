// Lines of a search, for --auto and --fit.
#pragma once

#include "par/Inspect/Memory.h"
#include "par/Inspect/MemoryOverTime.h"
#include "par/Inspect/SearchFacts.h"
#include "par/Search/Search.h"

#include "llvm/Support/raw_ostream.h"

namespace par {

/// The result as values, with so many alternatives.
SearchFacts describeSearch(const SearchResult &result, size_t alternatives);

/// Why keys have their values, a line a key: "mesh = dp 8; second dp 4 x tp 2, 4.1 % slower".
void printReasons(const SearchFacts &facts, llvm::raw_ostream &os);

/// The space, the best plan, how far from the bound it may be, and why each key has its value:
///
///     search  312 plans for 8 ranks: 26 compilations of h, of which 47 of 48 are equal; 3 plans compiled whole
///     best    dp 8, zero 1, 8 microbatches of 2: step 118 ms, peak 12.3 GiB
///     bound   no plan of these takes less than 102 ms (local work, without communication): gap 13.6 %
///       mesh = dp 8; second dp 4 x tp 2, 4.1 % slower
void printSearch(const SearchResult &result, llvm::raw_ostream &os);

/// `note    precision is f32, as the plan says none; h100-sxm has 13 times as many FLOP/s in bf16: --set
/// precision=bf16` (one line), of a plan for GPUs.
void printAssumed(const SearchResult &result, llvm::raw_ostream &os);

/// The table of --alternatives, a line a plan, the best first: `most` of them.
void printAlternatives(const SearchResult &result, size_t most, llvm::raw_ostream &os);

/// `fewest  2 ranks: dp 2, zero 3, ...: step 400 ms, peak 70.1 GiB`
void printFewest(const SearchResult &result, llvm::raw_ostream &os);

/// The table of --fit: the largest of what lives at a role's peak, by name.
void printLargest(const RoleOverTime &role, llvm::raw_ostream &os);

/// Comments for the head of a plan that a search has completed: a line a key.
std::string commentReasons(const SearchResult &result);

/// The completed plan, whose keys with the comment `# --set` have, where the search chose them, who did and why:
///
///     mesh:
///       dp: 16                               # --auto: second dp 8 x tp 2, 4.7 % slower
std::string markFound(const SearchFacts &search, llvm::StringRef plan);

} // namespace par
