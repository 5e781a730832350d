// Branch and bound over a list of choices.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace par {

/// The cheapest choices, and how many were evaluated.
struct BestChoices {
  std::vector<std::pair<int64_t, size_t>> best; ///< cost and index, the cheapest first, of equal ones the lower index
  size_t evaluated = 0;
};

/// The `keep` cheapest of `bounds.size()` choices. A choice's cost is never below its bound; nothing: it is impossible.
/// Choices are evaluated by their bounds, the lowest first, until the next bound is not below the cost of the last one
/// that would be kept.
BestChoices bestFirst(const std::vector<int64_t> &bounds, llvm::function_ref<std::optional<int64_t>(size_t)> cost,
                      size_t keep);

} // namespace par
