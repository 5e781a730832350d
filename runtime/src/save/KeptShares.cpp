// Divides the state of ranks among those that hold the same.
#include "KeptShares.h"

#include <algorithm>

namespace par::core {

namespace {

constexpr uint64_t unit = format::arenaAlignment;

uint64_t wholeUnits(uint64_t bytes) { return (bytes + unit - 1) / unit * unit; }

/// A buffer that a copy holds: it lies by itself, and training changes its tensor.
const format::Tensor *keptTensor(const format::Manifest &manifest, const format::Buffer &buffer) {
  if (buffer.kind != format::BufferKind::State || buffer.of != format::noIndex)
    return nullptr;
  const format::Tensor *tensor = manifest.findTensor(buffer.tensor);
  return tensor && changesInTraining(*tensor) ? tensor : nullptr;
}

/// A rank and the rectangle that it holds of some tensor.
using Holder = std::pair<uint32_t, const format::Rectangle *>;

/// The ranks that hold the same bytes of a tensor as `holder`.
std::vector<uint32_t> sharersOf(const Holder &holder, const std::vector<Holder> &holders) {
  std::vector<uint32_t> sharers;
  for (const Holder &other : holders)
    if (other.first == holder.first || (holder.second && other.second == holder.second))
      sharers.push_back(other.first);
  return sharers;
}

} // namespace

bool changesInTraining(const format::Tensor &tensor) {
  return tensor.kind != format::TensorKind::Constant && tensor.kind != format::TensorKind::Frozen;
}

std::vector<KeptPart> keptParts(const format::Bundle &bundle, uint32_t rank) {
  const format::Program &program = bundle.programs[bundle.manifest.ranks[rank].role];
  std::vector<KeptPart> parts;
  uint64_t at = 0;
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (const format::Tensor *tensor = keptTensor(bundle.manifest, program.buffers[i])) {
      uint64_t bytes = program.buffers[i].bytes();
      parts.push_back({tensor, i, at, bytes});
      at += wholeUnits(bytes);
    }
  return parts;
}

// Every rank finds the same pieces of every other one: a rank's memory holds its shares in the order of its parts.
// Ranks of one role have the same parts.
KeptShares::KeptShares(const format::Bundle &bundle, uint32_t rank, const std::vector<uint32_t> &seen)
    : all(keptParts(bundle, rank)), copied(bundle.manifest.ranks.size()) {
  const std::vector<format::Rank> &ranks = bundle.manifest.ranks;
  for (uint32_t part = 0; part < all.size(); ++part) {
    std::vector<Holder> holders;
    for (uint32_t other : seen)
      if (ranks[other].role == ranks[rank].role)
        holders.push_back({other, format::rectangleOf(all[part].tensor->layout, other)});
    for (const Holder &holder : holders)
      addShare(part, holder.first, sharersOf(holder, holders), rank);
  }
}

void KeptShares::addShare(uint32_t part, uint32_t holder, const std::vector<uint32_t> &sharers, uint32_t rank) {
  uint64_t bytes = all[part].bytes, count = sharers.size(), share = wholeUnits((bytes + count - 1) / count);
  auto place = static_cast<uint64_t>(std::find(sharers.begin(), sharers.end(), holder) - sharers.begin());
  // Small parts have no byte for the last ones: each begins at another rank.
  uint64_t at = std::min(bytes, (place + part) % count * share), own = std::min(share, bytes - at);
  if (own && std::find(sharers.begin(), sharers.end(), rank) != sharers.end()) {
    found.push_back({holder, copied[holder], part, at, own});
    isDivided |= holder != rank;
  }
  copied[holder] += wholeUnits(own);
}

uint64_t KeptShares::copiedBy(uint32_t holder) const { return copied[holder]; }

} // namespace par::core
