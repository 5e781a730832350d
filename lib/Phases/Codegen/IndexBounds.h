#pragma once

#include "mlir/IR/AffineExpr.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace par::codegen {

/// Bounds of an index, both included. An unknown side is the limit of the type.
struct IndexBounds {
  static constexpr int64_t lowest = INT64_MIN, highest = INT64_MAX;
  int64_t low = lowest, high = highest;

  /// Bounds of a loop, or of an index in a dim, of this size.
  static IndexBounds below(int64_t size) { return {0, size > 0 ? size - 1 : 0}; }
};

/// Bounds of an expression, from those of its dims. Each of its terms is taken for itself, so they may be wider than
/// need be.
IndexBounds boundsOf(mlir::AffineExpr expr, llvm::function_ref<IndexBounds(unsigned dim)> ofDim);

} // namespace par::codegen
