// Ranks that are processes.
#pragma once

#include "par/comm/job/Launch.h"

namespace par::comm {

/// Forks `world` ranks, hosts their rendezvous, watches them, and returns the job's exit code.
int runForked(const Launch &launch, uint32_t world, const std::function<int(Control &)> &rankMain);

/// Runs the rank that a launcher has made this process; rank 0 hosts the rendezvous in a thread.
int runLaunched(const Launch &launch, const Place &place, const std::function<int(Control &)> &rankMain);

} // namespace par::comm
