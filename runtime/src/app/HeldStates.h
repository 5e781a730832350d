// The boundaries that the memories of all ranks hold at another start, and the way from them to a rank that has none.
#pragma once

#include "save/Mirroring.h"
#include "save/Replicas.h"

namespace par::core {

class HeldStates {
public:
  /// Collective: ranks tell each other. `mirroring` is null without --mirror. `said`: the step up to which rank 0 has
  /// written all lines; other ranks' does not count.
  HeldStates(comm::Control &control, KeptState &kept, const Mirroring *mirroring, uint64_t said);

  bool isLost(uint32_t rank) const { return held[rank].lost; }
  bool anyLost() const;
  /// Whether no rank has made a second copy.
  bool haveFew() const;
  /// Boundaries that all ranks hold which are not lost, oldest first.
  std::vector<Boundary> common() const;
  /// A boundary as this rank has noted it; as it is given, beside what is of the rank itself, if it has none.
  Boundary own(const Boundary &boundary) const;

  /// Collective. Gives the ranks that are lost the boundary that the others hold, and adds to `how` from where. Returns
  /// a sentence where one part of their state is in no other's memory; nothing is sent then.
  std::string completeLost(const format::Bundle &bundle, const Boundary &boundary, std::string &how);
  /// Boundaries after `step` that some ranks hold beside these, oldest first: where a step was abandoned. Rank 0 has
  /// written the lines up to them. None where a rank is lost.
  std::vector<Boundary> settled(uint64_t step) const;
  /// Collective. Gives it to the ranks that do not hold it; false where one of them can not be given all of it, or has
  /// no memory for it.
  bool completeSettled(const format::Bundle &bundle, const Boundary &boundary, const std::vector<uint32_t> &hostOf);
  /// By rank, whether its neighbour has the mirror of this boundary.
  std::vector<bool> mirrored(uint64_t step) const;

private:
  struct Held {
    std::vector<Boundary> boundaries;
    std::optional<Boundary> settled;
    std::vector<HeldMirror> mirrors; ///< of other ranks
    bool lost = false;
  };
  std::optional<MirrorAt> mirrorOf(uint32_t rank, uint64_t step) const;
  std::string remarkOf(uint32_t rank, const std::vector<Transfer> &way) const;

  comm::Control &control;
  KeptState &kept;
  const Mirroring *mirroring;
  std::vector<Held> held; ///< by rank
  uint64_t said = 0;
};

} // namespace par::core
