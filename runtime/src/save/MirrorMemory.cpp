// Finds mirrors by the identity of their memory, and makes room for new ones.
#include "MirrorMemory.h"

#include <tuple>

namespace par::core {

std::string HeldMirror::encode() const {
  return std::to_string(rank) + (whole ? " 1 " : " 0 ") + std::to_string(step) + ";";
}

HeldMirror HeldMirror::decode(std::string &text) {
  HeldMirror mirror;
  char *at = text.data();
  mirror.rank = static_cast<uint32_t>(strtoul(at, &at, 10));
  mirror.whole = strtoul(at, &at, 10) != 0;
  mirror.step = strtoull(at, &at, 10);
  text.erase(0, static_cast<size_t>(at - text.data()) + 1);
  return mirror;
}

MirrorMemory::MirrorMemory(const format::Bundle &bundle, std::array<int, 2> given)
    : bundle(bundle), descriptors(given) {
  for (size_t i = 0; i < sides.size(); ++i)
    open(sides[i], descriptors[i]);
}

std::string MirrorMemory::identityOf(uint32_t rank, bool whole) const {
  return "mirror 1 of " + std::string(whole ? "all of rank " : "rank ") + std::to_string(rank) + " " +
         bundle.manifest.bundleHash + bundle.manifest.planHash;
}

void MirrorMemory::open(Side &side, int descriptor) {
  std::string identity = CopyMemory::identityIn(descriptor);
  for (uint32_t rank = 0; !identity.empty() && rank < bundle.manifest.ranks.size(); ++rank)
    for (bool whole : {false, true})
      if (identity == identityOf(rank, whole)) {
        side.mirror = {rank, whole, 0};
        side.memory = CopyMemory(descriptor, core::bytesOf(mirrorRanges(bundle, rank, whole)), 1);
      }
  if (side.holds())
    side.mirror.step = side.memory.boundaries().front().step;
}

std::vector<HeldMirror> MirrorMemory::held() const {
  std::vector<HeldMirror> mirrors;
  for (const Side &side : sides)
    if (side.holds())
      mirrors.push_back(side.mirror);
  return mirrors;
}

std::span<const std::byte> MirrorMemory::bytesOf(const HeldMirror &mirror) const {
  for (const Side &side : sides)
    if (side.holds() && side.mirror == mirror)
      return side.memory.bytesAt(0);
  return {};
}

std::span<std::byte> MirrorMemory::begin(const HeldMirror &mirror, uint64_t stays) {
  auto worth = [&](const Side &side) {
    bool stands = side.holds() && side.mirror.step == stays;
    bool same = side.mirror.rank == mirror.rank && side.mirror.whole == mirror.whole;
    return std::tuple(stands && same, stands, side.holds() ? side.mirror.step : 0);
  };
  filling = worth(sides[0]) <= worth(sides[1]) ? 0 : 1;
  Side &side = sides[filling];
  uint64_t bytes = core::bytesOf(mirrorRanges(bundle, mirror.rank, mirror.whole));
  if (!side.memory || side.mirror.rank != mirror.rank || side.mirror.whole != mirror.whole) {
    side.memory = CopyMemory();
    side.memory = CopyMemory(descriptors[filling], bytes, identityOf(mirror.rank, mirror.whole), true, 1);
  }
  side.mirror = mirror;
  side.memory.beginCopy(0);
  return side.memory.bytesAt(0);
}

void MirrorMemory::end() {
  Side &side = sides[filling];
  Boundary boundary;
  boundary.step = side.mirror.step;
  side.memory.endCopy(0, boundary);
}

} // namespace par::core
