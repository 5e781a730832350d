// Checks a job's outputs against its inputs.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Throws Failure (exit 2) if --metrics, --trace, --output or --export would overwrite a file that the job reads, each
/// other, or a file of --save. None of these files is open yet. Pipes and devices are not checked: writing to them
/// destroys nothing.
void checkOutputs(const Job &job);

} // namespace par::core
