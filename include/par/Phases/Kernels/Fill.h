#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// True for a pad that puts zeros behind all elements of its operand in memory, and nowhere else.
bool addsAtEnd(mlir::Operation *op);

/// True for a kernel that is such a pad and takes over its operand: the implementation "fill", which writes the zeros
/// alone.
bool fillsUp(KernelOp kernel);

} // namespace par
