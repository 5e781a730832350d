#pragma once

#include "mlir/IR/AffineExpr.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace par::codegen {

/// What an index may be: from `low` to `high`, both included. A side that is not known is as far as numbers go.
struct IndexBounds {
  static constexpr int64_t lowest = INT64_MIN, highest = INT64_MAX;
  int64_t low = lowest, high = highest;

  /// Of a loop, or an index of a dim, of this size.
  static IndexBounds below(int64_t size) { return {0, size > 0 ? size - 1 : 0}; }
};

/// Bounds of an expression, from those of its dims. Each of its terms is taken for itself, so they may be wider than
/// need be.
IndexBounds boundsOf(mlir::AffineExpr expr, llvm::function_ref<IndexBounds(unsigned dim)> ofDim);

} // namespace par::codegen
