// par-run --calibrate: measures this machine with a bundle's instructions, and writes a hardware file.
#pragma once

#include "par/app/Job.h"
#include "par/calibrate/Calibrate.h"

namespace par::core {

/// Refuses a file that is there, one that par-compile would not read, and a folder that cannot be written.
void checkCalibration(const RunOptions &options, const std::string &bundle);

/// A bundle of one rank on a CPU is measured beside itself. Only for a process that starts all ranks.
void widenForCalibration(Job &job);

/// Rows of the trace that options.trace names, in the hardware file. Throws Failure.
void refineCalibration(const Job &job);

/// Collective; returns the exit code. Throws Failure.
int runCalibration(const Job &job, comm::Control &control, const calibrate::LargestWork &largest);

} // namespace par::core
