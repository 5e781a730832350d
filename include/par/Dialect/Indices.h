#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// An index that counts from the end if it is negative: select(index < 0, index + size, index).
struct FromEnd {
  mlir::Value index;
  int64_t size;
};

/// Nothing if the value is none such.
std::optional<FromEnd> matchFromEnd(mlir::Value value);

/// An integer except if it is `number`: select(index == number, other, index), or the same with != or a negation.
struct Replaced {
  mlir::Value index;
  int64_t number;
  mlir::Value other;
};

/// Nothing if the value is none such.
std::optional<Replaced> matchReplaced(mlir::Value value);

/// Whether an op only changes the width of integers, or only takes the low bits of a widened (so: unsigned) one.
bool keepsIntegers(mlir::Operation *op);

} // namespace par
