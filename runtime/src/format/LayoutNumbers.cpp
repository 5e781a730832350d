#include "LayoutNumbers.h"

using namespace par::format;

/// A hash of some of the numbers, by which most layouts are told apart.
static uint64_t hashOf(const Layout &layout) {
  uint64_t hash = layout.parts.size();
  auto add = [&](const auto &list) {
    for (auto number : list)
      hash = (hash ^ uint64_t(number)) * 0x9E3779B97F4A7C15u;
  };
  add(layout.shape), add(layout.local);
  if (!layout.parts.empty())
    for (const Rectangle *part : {&layout.parts[0], &layout.parts[layout.parts.size() - 1]})
      add(part->start), add(part->size), add(part->ranks);
  return hash;
}

uint32_t LayoutNumbers::of(const Layout &layout) {
  if (auto it = known.find(&layout); it != known.end())
    return it->second;
  uint64_t hash = hashOf(layout);
  for (auto [it, end] = firsts.equal_range(hash); it != end; ++it)
    if (*it->second == layout)
      return known[&layout] = known[it->second];
  uint32_t number = uint32_t(firsts.size());
  firsts.emplace(hash, &layout);
  return known[&layout] = number;
}
