// Where a job writes, beside what it reads.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Throws Failure (exit 2) where --metrics, --trace, --output or --export would write over what the job reads, over one
/// another, or over what --save writes. Nothing of these files is open yet. Files only: what is written into a pipe or
/// a device is lost to nobody.
void checkOutputs(const Job &job);

} // namespace par::core
