// Ops between the sum over the batch and the gradient that it becomes.
#pragma once

#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Par.h"

namespace par {

/// Whether the result is linear in these operands: unreduced sums of them give an unreduced sum.
bool isLinearIn(mlir::Operation *op, llvm::ArrayRef<unsigned> sums);

/// The chain from `op` to a gradient, or to the adds of stages' parts of one. Each op of it moves or adds up elements
/// of the operand `sum`, by constants or indices, and may convert them to a wider type: a table of biases that is
/// looked up once for the whole batch. Empty if there is no such chain.
llvm::SmallVector<mlir::Operation *> movesIntoGradient(mlir::Operation *op, unsigned sum);

} // namespace par
