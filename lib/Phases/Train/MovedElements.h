// Ops that move the elements of a parameter and compute nothing.
#pragma once

#include "mlir/IR/Operation.h"

namespace par {

/// Looks up elements of this operand, its first one, by integers.
bool isLookup(mlir::OpOperand &use);

/// Moves the elements of this operand, the only one that has such: a layout op on it, or a lookup of it.
bool movesElementsOf(mlir::OpOperand &use);

} // namespace par
