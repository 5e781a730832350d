// What integers a tensor may hold, by the ops that make it: MLIR's InferIntRangeInterface, of elements.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Both ends are in it.
struct IntegerRange {
  int64_t low, high;

  bool isIn(int64_t first, int64_t end) const { return low >= first && high < end; }
};

/// Of the elements of a tensor of integers of at most 64 bits, booleans being 0 and 1; all of the type where nothing is
/// known.
IntegerRange rangeOf(mlir::Value value);

} // namespace par
