#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Erases what nothing uses: computations of other results, cotangents of operands that need none.
void eraseDead(mlir::Block &block);

/// Reads of the variable that says whether the step trains become the constant `trains`. What is selected by it takes
/// the place of the choice, and what was not selected is gone.
void settleMode(StepOp step, bool trains);

} // namespace par
