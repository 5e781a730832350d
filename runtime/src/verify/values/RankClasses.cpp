// Classes of ranks that have equal values.
#include "RankClasses.h"

#include <algorithm>
#include <iterator>

using namespace par::verify;

static constexpr uint64_t noKey = ~uint64_t(0);

RankClasses::RankClasses(const std::vector<uint32_t> &order) : places(order.size()), keyAt(order.size(), noKey) {
  for (uint32_t place = 0; place < order.size(); ++place)
    places[order[place]] = place;
  internClass({});
  intern({});
}

uint64_t RankClasses::List::hash() const {
  uint64_t hash = begin;
  for (uint32_t number : classes)
    hash = (hash ^ number) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

void RankClasses::List::trim() {
  auto isNone = [](uint32_t number) { return number == 0; };
  auto first = std::find_if_not(classes.begin(), classes.end(), isNone);
  auto last = std::find_if_not(classes.rbegin(), std::make_reverse_iterator(first), isNone).base();
  begin = first == last ? 0 : begin + uint32_t(first - classes.begin());
  classes.erase(last, classes.end());
  classes.erase(classes.begin(), first);
}

RankClasses::Spread RankClasses::intern(List list) {
  list.trim();
  uint64_t hash = list.hash();
  for (auto [it, end] = known.equal_range(hash); it != end; ++it)
    if (spreads[it->second] == list)
      return it->second;
  known.emplace(hash, Spread(spreads.size()));
  spreads.push_back(std::move(list));
  return Spread(spreads.size() - 1);
}

uint32_t RankClasses::internClass(std::vector<uint64_t> atoms) {
  auto [it, fresh] = knownClasses.try_emplace(atoms, uint32_t(classes.size()));
  if (fresh)
    classes.push_back(std::move(atoms));
  return it->second;
}

/// Partitions are told apart by their pattern: keys are numbered in the order of the ranks.
RankClasses::Spread RankClasses::byKeys(const std::vector<Key> &keys, uint64_t route) {
  uint32_t begin = uint32_t(places.size()), end = 0;
  for (auto [rank, key] : keys) {
    keyAt[places[rank]] = key;
    begin = std::min(begin, places[rank]), end = std::max(end, places[rank] + 1);
  }
  List pattern{std::min(begin, end), {}};
  std::unordered_map<uint64_t, uint32_t> numbers;
  uint64_t before = noKey;
  for (uint32_t place = begin; place < end; ++place) { // neighbours mostly have one key
    uint64_t key = std::exchange(keyAt[place], noKey);
    if (key != before || pattern.classes.empty())
      pattern.classes.push_back(key == noKey ? 0
                                             : numbers.try_emplace(key, uint32_t(numbers.size() + 1)).first->second);
    else
      pattern.classes.push_back(pattern.classes.back());
    before = key;
  }
  if (numbers.size() < 2)
    return 0;
  uint64_t hash = pattern.hash();
  auto classOf = [](uint32_t number, uint32_t first) { return number ? first + number : 0; };
  for (auto [it, last] = partitions.equal_range(hash); it != last; ++it) {
    const auto &[spread, first, of] = it->second;
    if (of == route && spreads[spread].begin == pattern.begin &&
        std::ranges::equal(spreads[spread].classes, pattern.classes, {}, {},
                           [&, first = first](uint32_t number) { return classOf(number, first); }))
      return spread;
  }
  uint64_t partition = partitionCount++;
  uint32_t first = uint32_t(classes.size()) - 1; // no class has an atom of this partition yet
  for (uint64_t number = 1; number <= numbers.size(); ++number)
    internClass({partition << 32 | number});
  for (uint32_t &number : pattern.classes)
    number = classOf(number, first);
  Spread spread = intern(std::move(pattern));
  partitions.emplace(hash, Partition{spread, first, route});
  return spread;
}

uint32_t RankClasses::join(uint32_t a, uint32_t b) {
  if (a == b || b == 0)
    return a;
  if (a == 0)
    return b;
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
    List list{std::min(spreads[a].begin, spreads[b].begin), {}};
    uint32_t end = std::max(spreads[a].end(), spreads[b].end());
    for (uint32_t place = list.begin; place < end; ++place)
      list.classes.push_back(join(spreads[a].at(place), spreads[b].at(place)));
    it->second = intern(std::move(list));
  }
  return it->second;
}

RankClasses::Spread RankClasses::moved(const std::vector<Spread> &from, const std::vector<Move> &moves, bool &own) {
  std::vector<Key> keys;
  keys.reserve(moves.size());
  List list{uint32_t(places.size()), {}};
  uint32_t end = 0;
  for (const Move &move : moves) {
    uint32_t place = places[move.rank], number = classOf(from[move.which], move.source);
    keys.push_back({move.rank, number});
    own = own && join(classOf(from[move.which], move.rank), number) == number;
    list.begin = std::min(list.begin, place), end = std::max(end, place + 1);
  }
  if (!own)
    return byKeys(keys);
  list.classes.resize(end > list.begin ? end - list.begin : 0);
  for (auto [rank, number] : keys)
    list.classes[places[rank] - list.begin] = uint32_t(number);
  return intern(std::move(list));
}
