// The routine that computes each matmul. Rank 0 decides for all (replicas must not diverge) and keeps what it measured
// beside the bundle, so that two runs on one machine compute the same bits.
#pragma once

#include "par/comm/job/Control.h"
#include "par/cpu/Matmul.h"
#include "par/format/Bundle.h"

namespace par::cpu {

/// Collective. The choices for all products of all programs of the bundle in `folder`. They are read from and
/// written to FOLDER.tuning.json, where each processor model and number of threads has its own. Without `times` nothing
/// is read or measured: each is one call of the library, so that bundles with matmuls of equal shapes compute equal
/// bits.
MatmulChoices shareMatmulTuning(const format::Bundle &bundle, const std::string &folder, comm::Control &control,
                                int threads, bool times);

} // namespace par::cpu
