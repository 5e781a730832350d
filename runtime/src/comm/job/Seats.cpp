// The choice of an attempt's ranks among the seats that have come.
#include "Seats.h"

#include <algorithm>
#include <tuple>

using namespace par::comm;

void Seats::setGone(uint32_t seat, bool isGone) {
  if (shrink())
    lives->gone(seat).store(isGone);
}

bool Seats::leave(uint32_t seat) {
  bool may = shrink() && seat > 0;
  if (may)
    setGone(seat, true);
  return may;
}

uint32_t Seats::membersFor(size_t most) const {
  uint32_t best = 0;
  for (uint32_t ranks : members)
    best = ranks <= most ? std::max(best, ranks) : best;
  return best;
}

std::optional<std::vector<uint32_t>> Seats::choose(const std::vector<std::optional<Seated>> &come, bool begun) const {
  std::vector<uint32_t> here;
  for (uint32_t seat = 0; seat < seats; ++seat)
    if (come[seat])
      here.push_back(seat);
  if (here.size() == seats)
    return here;
  if (!shrink() || !begun || !come[0])
    return std::nullopt;
  bool waits = now() - since < int64_t(*seconds * 1e9);
  for (uint32_t seat = 0; seat < seats; ++seat)
    if (!come[seat] && !lives->gone(seat).load() && waits)
      return std::nullopt;
  uint32_t ranks = membersFor(here.size());
  if (!ranks)
    return std::nullopt;
  return pick(std::move(here), come, ranks);
}

// Seats of the last attempt come before others, as they hold its state; and of these one of each that hold the same
// before a second one, so that no part is left out.
std::vector<uint32_t> Seats::pick(std::vector<uint32_t> here, const std::vector<std::optional<Seated>> &come,
                                  uint32_t ranks) const {
  std::map<uint32_t, std::tuple<uint64_t, uint32_t, uint32_t>> order;
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, uint32_t> holders;
  uint64_t newest = 0;
  for (uint32_t seat : here)
    newest = std::max(newest, come[seat]->attempt);
  for (uint32_t seat : here) {
    const Seated &last = *come[seat];
    auto of = replicas.find(last.ranks);
    bool known = of != replicas.end() && last.rank < of->second.size();
    uint32_t before = holders[{last.attempt, last.ranks, known ? of->second[last.rank] : 0}]++;
    order[seat] = {newest - last.attempt, before, seat};
  }
  order[0] = {};
  std::sort(here.begin(), here.end(), [&](uint32_t a, uint32_t b) { return order[a] < order[b]; });
  here.resize(ranks);
  std::sort(here.begin(), here.end());
  return here;
}
