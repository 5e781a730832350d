// The devices that a plan is for, as a line.
#pragma once

#include "par/Base/Hardware.h"

#include <optional>

namespace par {

/// "16 x a100-40g, 8 a node: 235 GB/s a rank within a node, 22.5 GB/s over fabric; 38.0 GiB a rank". Levels wider than
/// the innermost one that holds all ranks are left out. `limit`: bytes of a rank; nothing: unlimited.
std::string describeMachine(const Hardware &hardware, int64_t ranks, std::optional<uint64_t> limit);

} // namespace par
