#pragma once

#include "par/Base/TypeSize.h"
#include "par/Dialect/Par.h"

#include "par/Dialect/Interfaces/Cost.h.inc"

namespace par {

/// Cost of one execution of an op on its shapes.
struct OpCost {
  int64_t flops = 0;
  int64_t bytes = 0;    ///< operands read and results written, each once
  bool fusable = false; ///< no memory traffic of its own next to a neighbour
};

/// Cost of an op by its interface; an op that has none computes nothing and moves its bytes.
OpCost getCost(mlir::Operation *op);

/// Whether an op moves elements and computes nothing.
bool movesElements(mlir::Operation *op);

} // namespace par
