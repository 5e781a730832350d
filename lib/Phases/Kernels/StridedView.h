#pragma once

#include "par/Dialect/Par.h"

#include <optional>

namespace par {

/// Strided layout of a value in a dense buffer: one size and stride (in elements) a dim, starting at `offset`.
struct StridedView {
  llvm::SmallVector<int64_t> sizes, strides;
  int64_t offset = 0;

  static StridedView dense(llvm::ArrayRef<int64_t> shape);
  /// Result dim i is dim permutation[i].
  StridedView transposed(llvm::ArrayRef<int64_t> permutation) const;
  /// Every dim's elements from starts[dim] on, to limits[dim], by steps[dim].
  StridedView sliced(llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> limits,
                     llvm::ArrayRef<int64_t> steps) const;
  /// The same elements in row-major order under another shape; none if no strides say that.
  std::optional<StridedView> reshaped(llvm::ArrayRef<int64_t> shape) const;

  bool operator==(const StridedView &) const = default;
};

/// For an op that only moves elements so that strides can say it: the view of its result, given its operand's.
/// None for other ops, and where no strides do.
std::optional<StridedView> viewForward(mlir::Operation *op, const StridedView &operand);
/// View after applying `moves` (in reverse order) to a dense buffer. None if it has no strides.
std::optional<StridedView> viewBehind(mlir::Value source, llvm::ArrayRef<mlir::Operation *> moves);
/// The view of its operand, given its result's.
std::optional<StridedView> viewBackward(mlir::Operation *op, const StridedView &result);

} // namespace par
