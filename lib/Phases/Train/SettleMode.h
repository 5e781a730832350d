#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Erases unused ops: computations of other results, cotangents of operands that need none.
void eraseDead(mlir::Block &block);

/// Replaces reads of the variable that says whether the step trains by the constant `trains`, and folds the selects
/// that depend on it.
void settleMode(StepOp step, bool trains);

} // namespace par
