// The options of a rank's session, from those of its run.
#pragma once

#include "par/app/Job.h"

namespace par::core {

SessionOptions sessionOptions(const Job &job);

} // namespace par::core
