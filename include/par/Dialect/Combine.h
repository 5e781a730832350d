#pragma once

#include "par/Base/Tensor.h"
#include "par/Dialect/Par.h"

#include <algorithm>

namespace par::interp {

/// Two values as a reduction of this kind joins them, on one rank or over ranks; NaN wins over a maximum or minimum.
template <typename T>
T combine(ReduceKind kind, T x, T y) {
  switch (kind) {
  case ReduceKind::sum:
    return x + y;
  case ReduceKind::product:
    return x * y;
  case ReduceKind::max:
    return x != x ? x : y != y ? y : std::max(x, y);
  case ReduceKind::min:
    return x != x ? x : y != y ? y : std::min(x, y);
  case ReduceKind::bitAnd:
    return static_cast<T>(static_cast<int64_t>(x) & static_cast<int64_t>(y));
  case ReduceKind::bitOr:
    return static_cast<T>(static_cast<int64_t>(x) | static_cast<int64_t>(y));
  }
  return x;
}

/// Joins `from` into `to`, element by element; both have the same type.
inline void combineInto(ReduceKind kind, Tensor &to, const Tensor &from) {
  if (to.isFloat())
    for (auto [x, y] : llvm::zip(to.mutableFloats(), from.floats()))
      x = combine<double>(kind, x, y);
  else
    for (auto [x, y] : llvm::zip(to.mutableInts(), from.ints()))
      x = combine<int64_t>(kind, x, y);
}

} // namespace par::interp
