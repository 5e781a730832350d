// The bytes and the time of recomputation.
#pragma once

#include "par/Compiler/Compiler.h"
#include "par/Phases/Recompute/Recompute.h"

namespace par {

struct RecomputeFacts {
  std::string mode;              ///< the plan's word
  bool given = false;            ///< by the user, not by default
  bool moves = false;            ///< saved values may go to host memory (offload: [saved])
  std::optional<uint64_t> limit; ///< of memory and auto: bytes of a rank, if they are bounded
  int64_t microbatches = 1;      ///< of a stage in a step
  RecomputeOutcomes stages;
};

/// Without stages if the plan does not train, or nothing is recomputed.
RecomputeFacts describeRecompute(const Compiled &compiled);

} // namespace par
