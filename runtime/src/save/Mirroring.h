// Sends copies of a rank's state to its neighbour, and takes those of another rank, beside the steps (par-run
// --mirror).
#pragma once

#include "BackgroundTask.h"
#include "MirrorMemory.h"
#include "par/comm/job/Control.h"

namespace par::core {

/// The cost of a rank's mirrors, but for the copies themselves.
struct MirrorCost {
  uint64_t sent = 0;
  double sendMs = 0, cpuMs = 0; ///< of the ways to the neighbour: all, and processor time
  double waitMs = 0;            ///< in which steps waited for them
};

/// Every rank has one, and calls the collective functions at the same places.
class Mirroring {
public:
  /// Collective. `place` begins messages.
  Mirroring(comm::Control &control, const format::Bundle &bundle, std::string place);

  const MirrorPlan &plan() const { return chosen; }
  const MirrorMemory &memory() const { return memories; }
  /// The mirror that a rank's neighbour is to hold of a boundary.
  HeldMirror of(uint32_t rank, uint64_t step) const { return {rank, chosen.whole(rank), step}; }

  /// Collective. Begins to send `copy`, this rank's of a boundary, to the neighbour: all must have had theirs of the
  /// boundary before. `has`: by rank, whether its neighbour holds that already; empty: none does.
  void begin(uint64_t step, std::span<const std::byte> copy, const std::vector<bool> &has = {});
  /// Whether this rank sends or receives.
  bool busy() const { return !task.done(); }
  /// Throws what has ended the last way to a neighbour, once it is over.
  void check();
  /// Collective: until no rank sends or receives.
  void finish();

  /// To be asked for after finish().
  const MirrorCost &cost() const { return costs; }

private:
  void exchange(const std::vector<std::span<const std::byte>> &sent, const std::vector<std::span<std::byte>> &room,
                const std::atomic<bool> &stop);

  comm::Control &control;
  const format::Bundle &bundle;
  std::string place;
  MirrorPlan chosen;
  MirrorMemory memories;
  uint32_t to, from; ///< the neighbours
  uint64_t last = 0; ///< the boundary that was begun last
  MirrorCost costs;
  std::shared_ptr<comm::HostCarrier> carrier;
  BackgroundTask task;
};

} // namespace par::core
