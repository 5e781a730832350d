// Rows of a buffer that are replaced, where the rest stays: of a decoder's cache, those of the new tokens.
#pragma once

#include "Groups.h"
#include "par/Phases/Kernels/Builtin.h"

namespace par {

/// The group of a select between rows of another value and those of a loaded buffer; null for other ops.
std::unique_ptr<Group> formRowWrite(mlir::Operation *op, IsTaken isTaken);
/// The call of the builtin "place_rows" that the kernel is, if it is one.
std::optional<BuiltinCall> describeRowWrite(KernelOp kernel);

} // namespace par
