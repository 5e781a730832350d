// Boundaries of which the ranks of an attempt hold the state in some layout, and who of them can read which part.
#pragma once

#include "HeldCopies.h"
#include "Replicas.h"

namespace par::core {

/// A boundary of a layout that may be gone on from.
struct HeldSource {
  uint32_t side = 0, ranks = 0; ///< the memories, and the member whose layout it is
  Boundary boundary;
  bool inPlace = false; ///< each rank holds what it is to hold
  /// By rank of the layout: those of this attempt that can read its part, and its mirror.
  std::vector<std::vector<uint32_t>> holders;
  std::vector<std::optional<MirrorAt>> mirrors;
};

/// Collective: boundaries that rank 0 holds, the newest one first, for it has written the lines up to that. `ranks`: of
/// this attempt's member.
std::vector<HeldSource> askForSources(comm::Control &control, const HeldMemories &held, uint32_t ranks);

} // namespace par::core
