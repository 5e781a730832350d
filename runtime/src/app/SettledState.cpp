// Copies the state of a step that was abandoned, and goes on there.
#include "SettledState.h"

namespace par::core {

/// A rank that copies more would come so late that it counts as lost, or be ended before.
static constexpr uint64_t maxSettledBytes = 256 << 20;

// Ranks that are together have shares of the state only, mirrors are of common boundaries, and under --shrink another
// start may have another layout.
SettledState::SettledState(const Job &job, Session &session, KeptState &kept, const comm::Placing &placing)
    : bundle(job.bundle), session(session), kept(kept), hostOf(placing.hostOf),
      isUsed(kept.keeps() && !kept.together() && !job.options.mirror && !job.options.spares &&
             placing.memories.empty() && kept.bytes() <= maxSettledBytes) {}

void SettledState::note(const std::optional<Boundary> &boundary) {
  noted = boundary;
  writes = session.onDevice().stateWrites();
}

void SettledState::keep() noexcept {
  if (!isUsed || !noted || !writes || writes != session.onDevice().stateWrites())
    return;
  CopyMemory &memory = kept.ownMemory();
  std::span<std::byte> to = memory.beginSpare();
  if (to.empty())
    return;
  kept.readInto(to);
  memory.endCopy(CopyMemory::spare, *noted);
}

std::optional<Boundary> SettledState::goOn(HeldStates &held, const std::vector<Boundary> &boundaries) {
  if (!isUsed)
    return std::nullopt;
  std::vector<Boundary> found = boundaries.empty() ? boundaries : held.settled(boundaries.back().step);
  while (!found.empty() && !held.completeSettled(bundle, found.back(), hostOf))
    found.pop_back();
  if (found.empty()) {
    // A later loss is not to find it: lines and saves are not those of another way.
    kept.ownMemory().dropSpare();
    return std::nullopt;
  }
  kept.restore(found.back().step, boundaries.back().step);
  return held.own(found.back());
}

} // namespace par::core
