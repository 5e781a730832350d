// Ranks that are processes.
#pragma once

#include "par/comm/job/Launch.h"

namespace par::comm {

/// Forks `world` ranks, hosts their rendezvous, watches them, and returns the job's exit code.
int runProcesses(const Launch &launch, uint32_t world, const std::function<int(Control &)> &rankMain);

/// Runs the rank that a launcher has made this process; rank 0 hosts the rendezvous in a thread.
int runUnderLauncher(const Launch &launch, const LaunchEnvironment &place,
                     const std::function<int(Control &)> &rankMain);

} // namespace par::comm
