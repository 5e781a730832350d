// Remarks before the first step on things that the user may not have meant.
#pragma once

#include "par/app/Job.h"

namespace par::core {

/// Warnings about a job whose weights and data are open: other data than its save's, a rate that takes a schedule's
/// place, results of a batch that is filled up. Notes the data's identity.
void remarkOnJob(Job &job);

} // namespace par::core
