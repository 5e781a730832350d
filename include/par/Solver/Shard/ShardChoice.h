// Which classes of dims one mesh axis shards: what work it divides against what it makes ranks send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace par {

/// Classes 0 to `classes` - 1 are sharded or not. Two of a conflict are not both.
///
///     q, k, v and the columns of an MLP read one value: each divides its own matmul, and the sum of that value's
///     gradient is paid once, whichever of them are sharded
struct ShardProblem {
  /// `ns` are saved, or of a negative number paid, once if any of the members is sharded.
  struct Effect {
    std::vector<size_t> members;
    int64_t ns = 0;
  };

  size_t classes = 0;
  std::vector<Effect> effects;
  std::vector<std::pair<size_t, size_t>> conflicts;
};

struct ShardChoice {
  std::vector<bool> sharded;
  int64_t saved = 0;  ///< ns; not negative, since nothing may be sharded
  int64_t atMost = 0; ///< no choice saves more; `saved`, unless the search met its limit of steps
};

/// The ns that a choice saves.
int64_t savedBy(const ShardProblem &problem, const std::vector<bool> &sharded);

/// The choice that saves most; of equal ones the first in the order of the search, the same on every machine.
ShardChoice chooseShards(const ShardProblem &problem);

} // namespace par
