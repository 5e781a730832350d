// The bundle of a family that a job runs.
#pragma once

#include "par/app/Job.h"

#include <optional>

namespace par::core {

/// If the bundle that was named is for another number of ranks than are started, and its family has one for them, that
/// is run: the job's name becomes its folder's, and a line says so.
void chooseMember(Job &job, std::optional<uint32_t> ranks);

} // namespace par::core
