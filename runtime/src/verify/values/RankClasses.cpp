// Classes of ranks that have equal values.
#include "RankClasses.h"

#include <algorithm>
#include <iterator>

using namespace par::verify;

RankClasses::RankClasses(uint32_t ranks) : ranks(ranks) {
  internClass({});
  intern(std::vector<uint32_t>(ranks, 0));
}

RankClasses::Spread RankClasses::intern(std::vector<uint32_t> list) {
  auto [it, fresh] = known.try_emplace(list, Spread(spreads.size()));
  if (fresh)
    spreads.push_back(std::move(list));
  return it->second;
}

uint32_t RankClasses::internClass(std::vector<uint64_t> atoms) {
  auto [it, fresh] = knownClasses.try_emplace(atoms, uint32_t(classes.size()));
  if (fresh)
    classes.push_back(std::move(atoms));
  return it->second;
}

/// Partitions are told apart by their pattern: keys are numbered in the order of the ranks.
RankClasses::Spread RankClasses::byKeys(const std::vector<uint64_t> &keys) {
  std::unordered_map<uint64_t, uint32_t> numbers;
  std::vector<uint32_t> pattern;
  pattern.reserve(keys.size());
  uint64_t before = noKey;
  for (uint64_t key : keys) { // neighbours mostly have one key
    if (key != before || pattern.empty())
      pattern.push_back(key == noKey ? 0 : numbers.try_emplace(key, uint32_t(numbers.size() + 1)).first->second);
    else
      pattern.push_back(pattern.back());
    before = key;
  }
  if (numbers.size() < 2)
    return 0;
  uint64_t partition = partitions.try_emplace(pattern, uint32_t(partitions.size())).first->second;
  std::vector<uint32_t> classOfNumber{0};
  for (uint64_t number = 1; number <= numbers.size(); ++number)
    classOfNumber.push_back(internClass({partition << 32 | number}));
  for (uint32_t &number : pattern)
    number = classOfNumber[number];
  return intern(std::move(pattern));
}

size_t RankClasses::Hash::operator()(const std::vector<uint32_t> &list) const {
  uint64_t hash = list.size();
  for (uint32_t number : list)
    hash = (hash ^ number) * 0x9E3779B97F4A7C15u;
  return size_t(hash ^ hash >> 32);
}

uint32_t RankClasses::join(uint32_t a, uint32_t b) {
  if (a == b)
    return a;
  auto [it, fresh] = joins.try_emplace(uint64_t(std::min(a, b)) << 32 | std::max(a, b), 0);
  if (fresh) {
    std::vector<uint64_t> atoms;
    std::set_union(classes[a].begin(), classes[a].end(), classes[b].begin(), classes[b].end(),
                   std::back_inserter(atoms));
    it->second = internClass(std::move(atoms));
  }
  return it->second;
}

RankClasses::Spread RankClasses::both(Spread a, Spread b) {
  if (a == b || b == 0)
    return a;
  if (a == 0)
    return b;
  auto [it, fresh] = unions.try_emplace(uint64_t(std::min(a, b)) << 32 | std::max(a, b), 0);
  if (fresh) {
    std::vector<uint32_t> list(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      list[rank] = join(spreads[a][rank], spreads[b][rank]);
    it->second = intern(std::move(list));
  }
  return it->second;
}

RankClasses::Spread RankClasses::moved(const std::vector<Spread> &from, const std::vector<uint32_t> &which,
                                       const std::vector<uint32_t> &source, bool &own) {
  std::vector<uint32_t> list(ranks);
  std::vector<uint64_t> keys(ranks, noKey);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (source[rank] == noRank)
      continue;
    const std::vector<uint32_t> &spread = spreads[from[which[rank]]];
    list[rank] = spread[source[rank]];
    keys[rank] = list[rank];
    own = own && join(spread[rank], list[rank]) == list[rank];
  }
  return own ? intern(std::move(list)) : byKeys(keys);
}
