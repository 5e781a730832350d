#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// True for a pad that only appends zeros after all elements of its operand in memory.
bool addsAtEnd(mlir::Operation *op);

/// True for a kernel of such a pad in its operand's buffer: the implementation "fill", which writes only the zeros.
bool fillsUp(KernelOp kernel);

} // namespace par
