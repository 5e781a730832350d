// Questions about a step that has fewer results, or other microbatches, than it will have.
#pragma once

#include "BatchTimes.h"

namespace par {

/// Keeps the results of these names, and the ops that they and the step's writes need.
void keepResults(StepOp step, llvm::function_ref<bool(llvm::StringRef)> keeps);
/// The same as BatchTimes::compute, without its errors.
mlir::FailureOr<BatchTimes> timesQuietly(StepOp step, int64_t microbatches);

} // namespace par
