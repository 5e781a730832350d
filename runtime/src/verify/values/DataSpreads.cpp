#include "DataSpreads.h"
#include "verify/Names.h"

#include <algorithm>

using namespace par::format;
using namespace par::verify;

static uint64_t keyOf(const Rectangle &part) {
  uint64_t key = 2;
  for (size_t dim = 0; dim < part.start.size(); ++dim)
    key = mix(mix(key, uint64_t(part.start[dim])), uint64_t(part.size[dim]));
  return key;
}

/// Each rank has one of the tensors. Padding after the end is each rank's own.
RankClasses::Spread DataSpreads::ofAll(const std::vector<const Tensor *> &tensors) {
  std::vector<RankClasses::Key> keys;
  for (const Tensor *tensor : tensors)
    for (const Rectangle &part : tensor->layout.parts) {
      bool padded = std::ranges::count(part.size, 0);
      uint64_t key = keyOf(part);
      for (uint32_t rank : part.ranks)
        keys.push_back({rank, padded ? mix(3, rank) : key});
    }
  return classes.byKeys(keys);
}

/// Spread of a tensor and its copies.
RankClasses::Spread DataSpreads::of(const Tensor &tensor) {
  const std::string &name = tensor.kind == TensorKind::Copy ? tensor.of : tensor.name;
  auto [it, fresh] = known.try_emplace("tensor " + name, 0);
  if (!fresh)
    return it->second;
  if (copies.empty())
    for (const Tensor &other : manifest.tensors)
      copies[other.kind == TensorKind::Copy ? other.of : other.name].push_back(&other);
  const std::vector<const Tensor *> &all = copies[name];
  if (all.size() != 1)
    return it->second = ofAll(all);
  auto [same, first] = alone.try_emplace(layouts.of(all[0]->layout), 0);
  if (first)
    same->second = ofAll(all);
  return it->second = same->second;
}

RankClasses::Spread DataSpreads::of(const Input &input) {
  auto [it, fresh] = known.try_emplace("input " + input.name, 0);
  if (!fresh)
    return it->second;
  std::vector<RankClasses::Key> keys;
  auto add = [&](const Layout &layout) {
    for (const Rectangle &part : layout.parts)
      for (uint32_t rank : part.ranks)
        keys.push_back({rank, keyOf(part)});
  };
  add(input.layout);
  for (const Layout &layout : input.more)
    add(layout);
  return it->second = classes.byKeys(keys);
}

RankClasses::Spread DataSpreads::ofAxis(const std::string &axis) {
  auto [it, fresh] = known.try_emplace("axis " + axis, 0);
  if (!fresh)
    return it->second;
  std::vector<RankClasses::Key> keys;
  for (uint32_t rank = 0; rank < manifest.ranks.size(); ++rank)
    keys.push_back({rank, coordinateOf(manifest, rank, axis).value_or(0)});
  return it->second = classes.byKeys(keys);
}
