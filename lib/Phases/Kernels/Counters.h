// Counters that several stages advance, each for itself.
#pragma once

#include "Groups.h"

namespace par {

/// A group for the new value of each counter that stages share, with all scalars that it follows from, which it
/// computes for itself: a stage that reads the counter or other numbers of the step and one that does not have the same
/// kernel, so that par-verify sees that they end with the same number.
std::vector<std::unique_ptr<Group>> formCounters(BlockOp block, IsTaken isTaken);

} // namespace par
