// Finds and reads copies of states in the memories of ranks.
#include "HeldCopies.h"

#include "par/files/Rectangles.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <unistd.h>

namespace par::core {

namespace {

/// The rank of a bundle whose copies a memory holds.
std::optional<uint32_t> rankIn(const format::Bundle &bundle, const std::string &identity) {
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank)
    if (identity == KeptState::identityOf(bundle, rank))
      return rank;
  return std::nullopt;
}

/// The rectangle of a part that a rank holds, of the bytes of its buffer: without padding.
std::vector<std::byte> denseOf(std::vector<std::byte> local, const KeptPart &part, uint32_t rank) {
  const format::Layout &layout = part.tensor->layout;
  const format::Rectangle &held = *format::rectangleOf(layout, rank);
  if (layout.local == held.size)
    return local;
  uint64_t element = format::sizeOf(part.tensor->type);
  std::vector<std::byte> dense;
  std::vector<int64_t> origin(held.size.size(), 0);
  forEachRun(held.size, origin, layout.local, origin, held.size, [&](int64_t, int64_t from, int64_t n) {
    auto begin = local.begin() + from * static_cast<int64_t>(element);
    dense.insert(dense.end(), begin, begin + n * static_cast<int64_t>(element));
  });
  return dense;
}

uint64_t takeNumber(std::string &text) {
  char *end = nullptr;
  uint64_t number = strtoull(text.c_str(), &end, 10);
  text.erase(0, static_cast<size_t>(end - text.c_str()) + 1);
  return number;
}

} // namespace

std::string HeldCopies::encode() const {
  std::string text;
  for (uint64_t number : {uint64_t(seat), uint64_t(side), uint64_t(ranks), uint64_t(rank), uint64_t(boundaries.size())})
    text += std::to_string(number) + " ";
  for (const Boundary &boundary : boundaries)
    text += boundary.encode();
  return text;
}

HeldCopies HeldCopies::decode(std::string &text) {
  HeldCopies copies;
  for (uint32_t *number : {&copies.seat, &copies.side, &copies.ranks, &copies.rank})
    *number = static_cast<uint32_t>(takeNumber(text));
  for (uint64_t left = takeNumber(text); left > 0; --left)
    copies.boundaries.push_back(Boundary::decode(text));
  return copies;
}

HeldMemories::HeldMemories(const comm::Placing &placing, std::vector<const format::Bundle *> given)
    : placing(placing), family(std::move(given)) {
  for (uint32_t seat = 0; seat < placing.memories.size(); ++seat)
    for (uint32_t side = 0; side < 2; ++side) {
      int descriptor = placing.memories[seat][side];
      std::string identity = descriptor < 0 ? "" : CopyMemory::identityIn(descriptor);
      for (const format::Bundle *bundle : family)
        if (auto rank = rankIn(*bundle, identity))
          all.push_back({seat, side, static_cast<uint32_t>(bundle->manifest.ranks.size()), *rank, {}});
    }
  for (HeldCopies &copies : all)
    copies.boundaries = memoryOf(copies).boundaries();
  for (const format::Bundle *bundle : family)
    if (placing.mirrors[0] >= 0)
      mirrored.emplace(static_cast<uint32_t>(bundle->manifest.ranks.size()), MirrorMemory(*bundle, placing.mirrors));
}

bool HeldMemories::together() const {
  return std::count_if(placing.memories.begin(), placing.memories.end(),
                       [](const std::array<int, 2> &memory) { return memory[0] >= 0; }) > 1;
}

const format::Bundle &HeldMemories::member(uint32_t ranks) const {
  return **std::find_if(family.begin(), family.end(),
                        [&](const format::Bundle *bundle) { return bundle->manifest.ranks.size() == ranks; });
}

const KeptShares &HeldMemories::sharesOf(const HeldCopies &copies) {
  auto found = shares.find({copies.ranks, copies.rank});
  if (found == shares.end()) {
    std::vector<uint32_t> seen;
    for (uint32_t rank = 0; rank < copies.ranks; ++rank)
      if (together() || rank == copies.rank)
        seen.push_back(rank);
    KeptShares made(member(copies.ranks), copies.rank, seen);
    found = shares.emplace(std::pair(copies.ranks, copies.rank), std::move(made)).first;
  }
  return found->second;
}

CopyMemory &HeldMemories::memoryOf(const HeldCopies &copies) {
  int descriptor = placing.memories[copies.seat][copies.side];
  auto found = memories.find(descriptor);
  if (found == memories.end())
    found = memories.emplace(descriptor, CopyMemory(descriptor, sharesOf(copies).copiedBy(copies.rank))).first;
  return found->second;
}

std::vector<std::byte> HeldMemories::read(const HeldCopies &copies, const KeptPart &part, uint64_t step) {
  const KeptShares &own = sharesOf(copies);
  std::vector<std::byte> local(part.bytes);
  for (const KeptPiece &piece : own.pieces()) {
    if (own.parts()[piece.part].buffer != part.buffer)
      continue;
    auto holder = std::find_if(all.begin(), all.end(), [&](const HeldCopies &other) {
      return other.side == copies.side && other.ranks == copies.ranks && other.rank == piece.holder;
    });
    CopyMemory &memory = memoryOf(*holder);
    std::memcpy(local.data() + piece.at, memory.bytesAt(memory.find(step)).data() + piece.heldAt, piece.bytes);
  }
  return denseOf(std::move(local), part, copies.rank);
}

std::vector<MirrorOf> HeldMemories::mirrors() const {
  std::vector<MirrorOf> held;
  for (const auto &[ranks, memory] : mirrored)
    for (const HeldMirror &mirror : memory.held())
      held.push_back({ranks, mirror});
  return held;
}

std::vector<std::byte> HeldMemories::read(const MirrorOf &of, const KeptPart &part) {
  std::span<const std::byte> all = mirrored.at(of.ranks).bytesOf(of.mirror);
  std::span<const std::byte> bytes = all.subspan(*placeIn(of, part), part.bytes);
  return denseOf({bytes.begin(), bytes.end()}, part, of.mirror.rank);
}

std::optional<uint64_t> HeldMemories::placeIn(const MirrorOf &of, const KeptPart &part) {
  auto [found, isNew] = ranges.try_emplace({of.ranks, of.mirror.rank, of.mirror.whole});
  if (isNew)
    found->second = mirrorRanges(member(of.ranks), of.mirror.rank, of.mirror.whole);
  return placeInMirror(found->second, part);
}

std::vector<std::byte> HeldMemories::notesOf(const HeldCopies &copies) {
  const std::byte *notes = memoryOf(copies).notes();
  return {notes, notes + CopyMemory::notesBytes};
}

void HeldMemories::release(uint32_t side) {
  memories.clear();
  for (const std::array<int, 2> &memory : placing.memories)
    if (memory[side] >= 0)
      static_cast<void>(ftruncate(memory[side], 0));
}

} // namespace par::core
