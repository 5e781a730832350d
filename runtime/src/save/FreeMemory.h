// Memory of this machine.
#pragma once

#include <cstdint>

namespace par::core {

/// Bytes that programs can take without others having to give some; all that 64 bits count where the system does not
/// tell.
uint64_t freeMemory();

} // namespace par::core
