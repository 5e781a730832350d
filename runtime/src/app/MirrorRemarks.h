// Lines of par-run about the cost of mirrors (--mirror).
#pragma once

#include "save/Mirroring.h"

namespace par::core {

/// The cost that is known at the start: bytes on their way, and memory.
std::string remarkOfMirrors(const format::Bundle &bundle, const MirrorPlan &plan, const std::vector<uint32_t> &hostOf,
                            uint64_t every);
/// Collective. The time that mirrors took, on the rank where that was longest. `copyMs`: of all copies.
std::string costsOfMirrors(comm::Control &control, const MirrorCost &own, double copyMs);

} // namespace par::core
