// Texts of everything in a plan that the result of a phase depends on, beside the phases in front of it.
#pragma once

#include "par/Compiler/Compiler.h"

namespace par {

/// Keys of Import and each phase, in order. If the keys of a phase and of all earlier phases are equal, so is the
/// module:
///
///     import      every section of the plan but zero, offload, recompute and collectives, and the origins of values
///     annotate    whether something is recomputed, if stages are balanced by it
///     others      the textual pipeline, which has every option that the plan gives
std::vector<PhaseKey> keysOf(const PlannedModel &planned, llvm::ArrayRef<Phase> phases);
/// The key of Import in a trial, whose errors are not shown: the values that it takes of the plan, not their origins.
std::string keyOfTrialImport(const PlannedModel &planned);
/// The text of one phase's key, Annotate's excepted.
std::string keyOf(const Phase &phase);

} // namespace par
