// The f32 masters of parameters that matmuls read in bf16 or fp16.
#pragma once

#include "par/Plan/Model/Plan.h"

namespace par {

/// Whether `zero` 1 or 2 keeps the f32 masters of rounded parameters as it keeps states: sharded, the rounded values
/// gathered once a step. `rounds`: some parameters are read rounded.
///
/// An asynchronous schedule reads versions of whole parameters, so it keeps masters whole.
inline bool shardsMasters(const Plan &plan, bool rounds) {
  bool ofStates = *plan.zero.level == 1 || *plan.zero.level == 2;
  return rounds && plan.train && ofStates && plan.axesSize(*plan.zero.over) > 1 && plan.updatesBehind().empty();
}

} // namespace par
