// All ranks as threads of one process.
#pragma once

#include "Base.h"

namespace par::comm {

/// Runs `world` ranks as threads (one: in this thread) and returns the exit code.
int runThreads(const Launch &launch, uint32_t world, const std::function<int(Control &)> &rankMain);

/// Runs one rank's main on any control plane: exceptions end the job. Returns the rank's exit code.
int runRank(SharedStateControl &control, SharedState &sharedState, const std::function<int(Control &)> &rankMain);

} // namespace par::comm
