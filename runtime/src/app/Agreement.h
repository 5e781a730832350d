// Ranks that a launcher or a user starts read their command lines each by itself. What must be alike is compared before
// the first step: weights, data and steps that differ would train replicas apart, without a word.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Collective. Throws Failure naming the first rank whose flags are not rank 0's, the flag and both values.
void agreeOnFlags(const Job &job, comm::Control &control);

} // namespace par::core
