// Errors of roles that need more than the memory limit, with notes on settings that help.
#pragma once

#include "par/Inspect/Memory.h"
#include "par/Inspect/Recompute.h"
#include "par/Inspect/WaysOut.h"

namespace par {

/// Error 12 of each role above the limit, at the place of `place`.
std::vector<CompileDiagnostic> diagnosticsAboveLimit(llvm::ArrayRef<RoleMemory> roles, uint64_t limit,
                                                     const CompileDiagnostic &place);

/// `zero: 1 brings it to 49.9 GiB at +0.4 % time; recompute: full brings it to ...`
std::string describeWaysOut(const WaysOut &out, uint64_t limit);

/// The bytes that stay whatever is recomputed, and whether they prove that no choice fits; "" of a role for which none
/// was made.
std::string describeLowerBound(const RecomputeFacts &facts, const RoleMemory &role, uint64_t limit);

} // namespace par
