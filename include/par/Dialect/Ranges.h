// The range of an integer tensor's elements, derived from the ops that compute it by MLIR's InferIntRangeInterface.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Both ends are in it.
struct IntegerRange {
  int64_t low, high;

  bool isIn(int64_t first, int64_t end) const { return low >= first && high < end; }
};

/// Range of the elements of a tensor of integers of at most 64 bits (a boolean is 0 or 1); the type's full range if
/// nothing is known.
IntegerRange rangeOf(mlir::Value value);

} // namespace par
