#include "sim/Adversary.h"

#include "par/format/Program.h"

#include <algorithm>

namespace par::sim {

const char *toString(Strategy strategy) {
  static constexpr const char *words[] = {"issue order", "random order", "long delays", "one queue starved"};
  return words[static_cast<size_t>(strategy)];
}

Adversary::Adversary(Strategy strategy, uint64_t seed, uint32_t ranks) : strategy(strategy), state(seed), ranks(ranks) {
  if (strategy == Strategy::Issue)
    return;
  engine = below(2) == 0;
  // Another victim now and then, or the same to the end.
  constexpr uint64_t patiences[] = {32, 512, UINT64_MAX};
  patience = patiences[below(3)];
  chooseVictim();
}

/// splitmix64 (Steele, Lea, Flood 2014).
uint64_t Adversary::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void Adversary::chooseVictim() {
  victimRank = static_cast<uint32_t>(below(ranks));
  victimQueue = static_cast<uint32_t>(below(format::maxQueues));
}

uint64_t Adversary::dueNow() {
  if (strategy != Strategy::Delay)
    return 0;
  uint64_t longest = uint64_t(1) << below(21);
  return clock + 1 + below(longest);
}

size_t Adversary::pick(std::span<const Choice> choices) {
  auto best = [&](auto before) { return std::min_element(choices.begin(), choices.end(), before) - choices.begin(); };
  if (strategy == Strategy::Issue)
    return best([](const Choice &a, const Choice &b) { return a.step < b.step; });
  if (strategy == Strategy::Delay) {
    size_t first = best([](const Choice &a, const Choice &b) { return a.due < b.due; });
    clock = std::max(clock, choices[first].due);
    return first;
  }
  if (strategy == Strategy::Starve && patience != UINT64_MAX && below(patience) == 0)
    chooseVictim();
  auto free =
      static_cast<size_t>(std::count_if(choices.begin(), choices.end(), [](const Choice &c) { return !c.starved; }));
  size_t chosen = below(free ? free : choices.size());
  for (size_t i = 0; free && i < choices.size(); ++i)
    if (!choices[i].starved && chosen-- == 0)
      return i;
  return chosen;
}

} // namespace par::sim
