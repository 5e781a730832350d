// The bundle of a family that a job runs.
#pragma once

#include "par/app/Job.h"

#include <optional>

namespace par::core {

/// If the bundle that was named is for another number of ranks than are started, and its family has one for them, that
/// is run: the job's name becomes its folder's, and a line says so.
void chooseMember(Job &job, std::optional<uint32_t> ranks);
/// Under --shrink: opens and proves the members with fewer ranks, so that an attempt can run any of them at once.
/// Throws Failure where there is none, or one is not what family.json says.
void openFamily(Job &job);
/// Under --shrink: the job runs the member for so many ranks from here on.
void takeMember(Job &job, uint32_t ranks);

} // namespace par::core
