// The set of microbatches that a value is made of.
#include "MicrobatchSets.h"

#include <algorithm>
#include <iterator>

using namespace par::verify;

uint32_t MicrobatchSets::intern(std::vector<int64_t> members) {
  auto [it, fresh] = known.try_emplace(members, uint32_t(sets.size()));
  if (fresh)
    sets.push_back(std::move(members));
  return it->second;
}

uint32_t MicrobatchSets::both(uint32_t a, uint32_t b) {
  if (a == b || b == 0)
    return a;
  if (a == 0)
    return b;
  auto [it, fresh] = unions.try_emplace(uint64_t(std::min(a, b)) << 32 | std::max(a, b), 0);
  if (fresh) {
    std::vector<int64_t> members;
    std::set_union(sets[a].begin(), sets[a].end(), sets[b].begin(), sets[b].end(), std::back_inserter(members));
    it->second = intern(std::move(members));
  }
  return it->second;
}

std::optional<int64_t> MicrobatchSets::missing(uint32_t set) const {
  const std::vector<int64_t> &members = sets[set];
  if (members.empty())
    return std::nullopt;
  int64_t first = members.back() / count * count;
  for (int64_t microbatch = first; microbatch < first + count; ++microbatch)
    if (!std::binary_search(members.begin(), members.end(), microbatch))
      return microbatch;
  return std::nullopt;
}
