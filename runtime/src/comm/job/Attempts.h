// A supervised rank's process: one attempt of its job after the other.
#pragma once

#include "Life.h"
#include "par/comm/job/Launch.h"

namespace par::comm {

/// Runs the rank until its job ends: a loss leads to the next attempt. Communication is set up again for each attempt;
/// objects that `rankMain` refers to stay. Returns the exit code of the process.
int runAttempts(const Launch &launch, const LaunchEnvironment &place, const Supervised &supervised,
                const std::function<int(Control &)> &rankMain);

} // namespace par::comm
