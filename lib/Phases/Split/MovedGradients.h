// Ops between the sum over the batch and the gradient that it becomes.
#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Par.h"

namespace par {

/// Whether the result is an unreduced sum where these operands are and the others are not.
bool isLinearIn(mlir::Operation *op, llvm::ArrayRef<unsigned> sums);

/// The ops from `op` to a gradient, or to where stages' parts of one are added, if each of them moves elements of what
/// comes from the operand `sum`, or adds some of them up, where constants or indices say, widened on the way or not: a
/// table of biases that is looked up once for the whole batch. Else none.
llvm::SmallVector<mlir::Operation *> movesIntoGradient(mlir::Operation *op, unsigned sum);

} // namespace par
