// Ranks that a launcher or a user starts read their own command lines. Flags that must be equal are compared before the
// first step: different weights, data or steps would silently train replicas apart.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Collective. Throws Failure naming the first rank whose flags are not rank 0's, the flag and both values.
void agreeOnFlags(const Job &job, comm::Control &control);

} // namespace par::core
