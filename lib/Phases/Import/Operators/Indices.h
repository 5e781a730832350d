// Converts ONNX's indices to the dialect's: in range, and of rows.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// Which place an index in [-size, size) names.
int64_t wrapIndex(int64_t index, int64_t size);

/// The known input i with every index wrapped into [0, size), the size of dim `dim`; fails if one is outside.
llvm::FailureOr<StaticTensor> wrapKnown(NodeImporter &importer, const StaticTensor &known, int64_t dim, int64_t size);
/// Input i as indices of dim `dim` of `size`: negative ones are wrapped, known ones are checked.
llvm::FailureOr<mlir::Value> importIndices(NodeImporter &importer, size_t i, int64_t dim, int64_t size);
/// The indices, with negative ones counted from the end of `size`.
mlir::Value countFromEnd(NodeImporter &importer, mlir::Value indices, int64_t size);
/// Whether each is an element of an input, moved or converted, or one in [0, size) in place of it: par-run checks each
/// element before a step, by limits that Bundle's InputLimits finds in the same way.
bool isFed(mlir::Value indices, int64_t size);

/// The dims of the indices in place of one of a table's.
llvm::SmallVector<int64_t> gatheredShape(llvm::ArrayRef<int64_t> table, llvm::ArrayRef<int64_t> indices, int64_t dim);
/// A gather, or a take, by indices that may depend on data. An index outside of the dim looks up NaN, the smallest
/// integer or false. There is no such check for inputs, for indices that were checked at import (`areChecked`), and for
/// those that their ops prove to be in range.
mlir::Value gatherAt(NodeImporter &importer, mlir::Value table, mlir::Value indices, int64_t dim,
                     bool areChecked = false);
mlir::Value takeAt(NodeImporter &importer, mlir::Value operand, mlir::Value indices, int64_t dim,
                   bool areChecked = false);

/// Indices whose last dim names one element along each of several dims, as row-major indices of these dims together.
struct RowIndices {
  int64_t batch = 0;   ///< leading dims that tensor and indices share, each index keeping to its own place there
  Shape outer;         ///< all dims of the indices but the last
  int64_t depth = 0;   ///< number of dims after the batch dims that are addressed
  int64_t rows = 1;    ///< elements of these dims
  int64_t count = 1;   ///< number of indices: elements of `outer` after the batch dims
  bool known = false;  ///< when importing: each place has been checked
  mlir::Value indices; ///< i64 of (batch.., count); out of range if an index is outside of one of its dims

  /// (batch.., along) and the dims of `shape` after the addressed ones.
  llvm::SmallVector<int64_t> shapeOf(llvm::ArrayRef<int64_t> shape, int64_t along) const;
};
/// Input i addresses `shape` after its first `batch` dims, which the indices share. A first column that counts along
/// its dim (`x[arange(b), i]`) addresses nothing: the dim is one more batch dim, which can be sharded.
llvm::FailureOr<RowIndices> importRowIndices(NodeImporter &importer, size_t i, llvm::ArrayRef<int64_t> shape,
                                             int64_t batch = 0);

/// `part`, completed along `dim` by the rest of `whole`, which is sliced like the part along the other dims.
mlir::Value joinRest(NodeImporter &importer, mlir::Value part, mlir::Value whole, int64_t dim);

} // namespace par
