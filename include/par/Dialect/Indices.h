#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// An index that counts from the end where it is below 0: select(index < 0, index + size, index).
struct FromEnd {
  mlir::Value index;
  int64_t size;
};

/// Nothing if the value is none such.
std::optional<FromEnd> matchFromEnd(mlir::Value value);

/// An integer but where it is `number`: select(index == number, other, index), or the other way round with != or a
/// negation.
struct Replaced {
  mlir::Value index;
  int64_t number;
  mlir::Value other;
};

/// Nothing if the value is none such.
std::optional<Replaced> matchReplaced(mlir::Value value);

/// Whether an op changes the width of integers alone, or takes the low bits of what was widened, as of unsigned ones.
bool keepsIntegers(mlir::Operation *op);

} // namespace par
