// Choices that a plan leaves to Par and that are made on whole compilations: the plan is compiled without a word, its
// step is played, and what is predicted fastest stands in the plan before it is compiled for good.
#pragma once

#include "par/Compiler/Compiler.h"

namespace par {

/// Makes the choices that the plan leaves open: `mesh_order: auto`, then `collectives.bucket: auto`. Tells the observer
/// of the steps "order" and "bucket". Returns the last trial, whose kernels the compilation for good reuses; nothing if
/// there was nothing to choose. After an error, which that compilation reports, the defaults stand.
std::optional<Compiled> settleChoices(Compiled &out, const CompilerOptions &options, CompileObserver &observer,
                                      const Compiled *earlier);

/// ns of a batch of the plan's first entry, by its programs; nothing if they cannot be played. Cores that ranks share
/// are not counted: no decision depends on the machine that compiles.
std::optional<int64_t> playStep(const PlannedModel &planned, const format::Bundle &bundle);

/// Options of a compilation whose bundle is only played.
CompilerOptions trialOptions(const CompilerOptions &options);

/// The size of buckets with which the step is predicted fastest, of sizes by powers of four up to all parameters, then
/// half and twice the best, and the default. Ranks that fit their memory with the default fit it with the choice.
/// `first` is compiled with the default and kept the modules of `bucketPhases`.
std::optional<BucketChoice> chooseBucket(const Compiled &first, const CompilerOptions &options);
std::vector<std::string> bucketPhases();

} // namespace par
