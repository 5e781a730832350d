// A rank that ends before it has joined its job.
#pragma once

#include "par/comm/job/Launch.h"

namespace par::comm {

/// Tells the other ranks of a launcher's job, if they come soon, that this one ends before it has joined, and why, so
/// that they need not wait for it. `why`: this rank's output, of which the first line is sent. Prints rank 0's answer,
/// if that says more.
void tellOthers(const Launch &launch, const LaunchEnvironment &place, const std::string &why);

} // namespace par::comm
