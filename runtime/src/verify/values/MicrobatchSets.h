// The set of microbatches that a value is made of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace par::verify {

/// Sets of microbatches, each once; a set is its number, 0 the empty one.
class MicrobatchSets {
public:
  /// A batch is `count` microbatches, numbered one after the other.
  explicit MicrobatchSets(uint64_t count) : count(int64_t(count)) { intern({}); }

  uint32_t of(int64_t microbatch) { return intern({microbatch}); }
  uint32_t both(uint32_t a, uint32_t b);
  /// The first microbatch that is missing of the last batch of which the set has any.
  std::optional<int64_t> missing(uint32_t set) const;

private:
  uint32_t intern(std::vector<int64_t> members);

  int64_t count;
  std::vector<std::vector<int64_t>> sets; ///< sorted
  std::map<std::vector<int64_t>, uint32_t> known;
  std::unordered_map<uint64_t, uint32_t> unions;
};

} // namespace par::verify
