// Copies and mirrors of states as they lie in the memories of ranks, of whichever member of a family: who holds which
// boundary of which layout, and the bytes of a part.
#pragma once

#include "KeptState.h"
#include "MirrorMemory.h"

#include "par/comm/job/Control.h"

#include <map>
#include <optional>
#include <tuple>

namespace par::core {

/// The copies that one memory holds.
struct HeldCopies {
  uint32_t seat = 0, side = 0; ///< the memory: one of the two of a seat
  uint32_t ranks = 0;          ///< of the member whose layout it is
  uint32_t rank = 0;           ///< in that
  std::vector<Boundary> boundaries;

  std::string encode() const;
  /// Reads one from the front of the text and removes it.
  static HeldCopies decode(std::string &text);
};

/// A mirror that one memory holds (par-run --mirror).
struct MirrorOf {
  uint32_t ranks = 0; ///< of the member whose layout it is
  HeldMirror mirror;
};

/// Memories that this process sees, of the members of a family.
class HeldMemories {
public:
  HeldMemories(const comm::Placing &placing, std::vector<const format::Bundle *> family);

  const std::vector<HeldCopies> &copies() const { return all; }
  std::vector<MirrorOf> mirrors() const;
  /// The member with so many ranks.
  const format::Bundle &member(uint32_t ranks) const;
  /// The state of a rank's part at a boundary, dense: the rectangle that it holds, without padding.
  std::vector<std::byte> read(const HeldCopies &copies, const KeptPart &part, uint64_t step);
  /// The same from a mirror, which has that part.
  std::vector<std::byte> read(const MirrorOf &mirror, const KeptPart &part);
  /// The place of a part in a mirror, in whichever memory; nullopt where it is not there.
  std::optional<uint64_t> placeIn(const MirrorOf &mirror, const KeptPart &part);
  /// The notes of the run beside these copies.
  std::vector<std::byte> notesOf(const HeldCopies &copies);
  /// Gives the memories of one side back.
  void release(uint32_t side);
  /// Whether one process sees the memories of all seats.
  bool together() const;

private:
  const KeptShares &sharesOf(const HeldCopies &copies);
  CopyMemory &memoryOf(const HeldCopies &copies);

  comm::Placing placing;
  std::vector<const format::Bundle *> family;
  std::vector<HeldCopies> all;
  std::map<std::pair<uint32_t, uint32_t>, KeptShares> shares;                      ///< by ranks of the member and rank
  std::map<int, CopyMemory> memories;                                              ///< by descriptor
  std::map<uint32_t, MirrorMemory> mirrored;                                       ///< by ranks of the member
  std::map<std::tuple<uint32_t, uint32_t, bool>, std::vector<MirrorRange>> ranges; ///< the same, rank, whole
};

} // namespace par::core
