#include "HeldSources.h"

#include <algorithm>

namespace par::core {

namespace {

/// The memories that one rank of this attempt can read.
struct Readable {
  std::vector<HeldCopies> copies;
  std::vector<MirrorOf> mirrors;

  /// Reads a rank's word.
  explicit Readable(std::string text) {
    while (text[0] != '/')
      copies.push_back(HeldCopies::decode(text));
    for (text.erase(0, 1); !text.empty();) {
      size_t end = text.find(' ');
      auto ranks = static_cast<uint32_t>(std::stoul(text.substr(0, end)));
      text.erase(0, end + 1);
      mirrors.push_back({ranks, HeldMirror::decode(text)});
    }
  }
};

std::string wordOf(const HeldMemories &held) {
  std::string word;
  for (const HeldCopies &copies : held.copies())
    word += copies.encode();
  word += "/";
  for (const MirrorOf &one : held.mirrors())
    word += std::to_string(one.ranks) + " " + one.mirror.encode();
  return word;
}

bool holds(const HeldCopies &copies, uint64_t step) {
  return std::any_of(copies.boundaries.begin(), copies.boundaries.end(),
                     [&](const Boundary &boundary) { return boundary.step == step; });
}

/// Fills `one` with the ranks that can read its parts. `seats`: by rank of this attempt.
void findHolders(HeldSource &one, const std::vector<Readable> &all, const std::vector<uint32_t> &seats) {
  one.holders.resize(one.ranks);
  one.mirrors.resize(one.ranks);
  for (uint32_t rank = 0; rank < all.size(); ++rank) {
    for (const HeldCopies &copies : all[rank].copies)
      if (copies.side == one.side && copies.ranks == one.ranks && holds(copies, one.boundary.step)) {
        one.holders[copies.rank].push_back(rank);
        auto now = std::find(seats.begin(), seats.end(), copies.seat);
        one.inPlace &= now == seats.end() || now - seats.begin() == copies.rank;
      }
    for (const MirrorOf &of : all[rank].mirrors)
      if (of.ranks == one.ranks && of.mirror.step == one.boundary.step)
        one.mirrors[of.mirror.rank] = MirrorAt{rank, of.mirror};
  }
}

} // namespace

std::vector<HeldSource> askForSources(comm::Control &control, const HeldMemories &held, uint32_t ranks) {
  std::vector<Readable> all;
  for (std::string &word : control.allGather("copies", wordOf(held)))
    all.emplace_back(std::move(word));
  std::vector<HeldSource> found;
  for (const HeldCopies &copies : all[0].copies)
    for (const Boundary &boundary : copies.boundaries)
      if (copies.seat == 0) {
        found.push_back({copies.side, copies.ranks, boundary, copies.ranks == ranks, {}, {}});
        findHolders(found.back(), all, control.placing().seats);
      }
  std::sort(found.begin(), found.end(), [](const HeldSource &a, const HeldSource &b) {
    return std::pair(a.boundary.step, a.inPlace) > std::pair(b.boundary.step, b.inPlace);
  });
  return found;
}

} // namespace par::core
