// The state of a step that a loss has ended. Mostly the step has written none of it then: it is that of the boundary
// before the step, which no copy has yet.
//
// Ranks that are not together copy it at that moment, beside the two copies of KeptState, and the ranks go on there if
// those that lack it can be given it by replicas; if not, at a boundary of the two copies. These stay as they are, and
// nothing depends on the third one: its memory is taken then, if there is some. Larger states are not copied so, nor
// any beside spares, which take the places of ranks that are late.
#pragma once

#include "HeldStates.h"

#include "par/app/Job.h"

namespace par::core {

class SettledState {
public:
  SettledState(const Job &job, Session &session, KeptState &kept, const comm::Placing &placing);

  /// After a step with all that belongs to it: its boundary, of which all ranks have an older copy; nothing where
  /// another start may not go on from it.
  void note(const std::optional<Boundary> &boundary);
  /// After a step that was abandoned: copies the state, if it is still that of the noted boundary.
  void keep() noexcept;
  /// Collective, at another start: goes on from such a boundary after the last of these, which stays; nothing where not
  /// all ranks can.
  std::optional<Boundary> goOn(HeldStates &held, const std::vector<Boundary> &boundaries);

private:
  const format::Bundle &bundle;
  Session &session;
  KeptState &kept;
  std::vector<uint32_t> hostOf;
  bool isUsed;
  std::optional<Boundary> noted;
  std::optional<uint64_t> writes; ///< of the device, when it was noted
};

} // namespace par::core
