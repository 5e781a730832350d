// The data of a job.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Opens the data that the flags name; throws Failure where an input gets none, or they are fewer than a batch.
void openData(Job &job);

} // namespace par::core
