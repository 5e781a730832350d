// par-run --bench: the time that one call of an entry takes.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// The entry that is measured: `predict`, `eval` with --eval, else `train`. Throws Failure where the bundle has none.
std::string benchedEntry(const Job &job);
/// Collective; returns the rank's exit code.
int runBench(const Job &job, comm::Control &control);

} // namespace par::core
