// The f32 masters of parameters that matmuls read in bf16 or fp16.
#pragma once

#include "par/Plan/Model/Plan.h"

namespace par {

/// Whether `zero` 1 or 2 shards parameters that a plan reads rounded. `rounds`: some are.
inline bool zeroRounds(const Plan &plan, bool rounds) {
  bool ofStates = *plan.zero.level == 1 || *plan.zero.level == 2;
  return rounds && plan.train && ofStates && plan.axesSize(*plan.zero.over) > 1;
}

/// Whether `zero` 1 or 2 keeps the f32 masters of rounded parameters as it keeps states: sharded, the rounded values
/// gathered once a step. An asynchronous schedule has no such place in a step: microbatches of several versions
/// overlap.
inline bool shardsMasters(const Plan &plan, bool rounds) {
  return zeroRounds(plan, rounds) && plan.updatesBehind().empty();
}

/// Whether `zero` 1 or 2 shards all parameters and gathers them at their use, as `zero` 3 does: with an asynchronous
/// schedule that updates after every microbatch. Rounded values, once in forward and once in backward, are as many
/// bytes as one gather of the new f32 values, and a rank has shards of all versions. If a batch has more microbatches,
/// gathers at each use take longer, and masters stay whole.
inline bool gathersMastersAtUse(const Plan &plan, bool rounds) {
  return zeroRounds(plan, rounds) && !plan.updatesBehind().empty() && plan.rounds() == 1;
}

} // namespace par
