// What a job does that its user may not have meant, told before its first step.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Warnings about a job whose weights and data are open: other data than its save's, a rate that takes a schedule's
/// place, results of a batch that is filled up. Notes what tells the data from others.
void remarkOnJob(Job &job);

} // namespace par::core
