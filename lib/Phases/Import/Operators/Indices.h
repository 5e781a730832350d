// Indices as ONNX writes them, as the dialect wants them: in range, and of rows.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// Which place an index in [-size, size) names.
int64_t wrapIndex(int64_t index, int64_t size);

/// What is known of input i with every index in [0, size), those of dim `dim`; fails where one is outside.
llvm::FailureOr<StaticTensor> wrapKnown(NodeImporter &importer, const StaticTensor &known, int64_t dim, int64_t size);
/// Input i as indices of dim `dim` of `size`: what counts from the end is wrapped, what is known is checked.
llvm::FailureOr<mlir::Value> importIndices(NodeImporter &importer, size_t i, int64_t dim, int64_t size);
/// The indices, counted from the end of `size` where they are below 0.
mlir::Value countFromEnd(NodeImporter &importer, mlir::Value indices, int64_t size);
/// Whether each is an element of an input, in another place or width, or one in [0, size) instead: par-run looks at
/// each element before a step has it, by what Bundle's InputLimits finds on the same way.
bool isFed(mlir::Value indices, int64_t size);

/// The dims of the indices in place of one of a table's.
llvm::SmallVector<int64_t> gatheredShape(llvm::ArrayRef<int64_t> table, llvm::ArrayRef<int64_t> indices, int64_t dim);
/// A gather, or a take, by indices that data may decide. Those outside of the dim look up nothing: NaN, the least
/// integer or false. What is fed, checked when importing (`areChecked`), or in range by the ops that make it, is not
/// asked.
mlir::Value gatherAt(NodeImporter &importer, mlir::Value table, mlir::Value indices, int64_t dim,
                     bool areChecked = false);
mlir::Value takeAt(NodeImporter &importer, mlir::Value operand, mlir::Value indices, int64_t dim,
                   bool areChecked = false);

/// Indices whose last dim names one element along each of several dims, as row-major indices of these dims together.
struct RowIndices {
  int64_t batch = 0;  ///< leading dims that tensor and indices share, each index keeping to its own place there
  Shape outer;        ///< all dims of the indices but the last
  int64_t depth = 0;  ///< how many dims behind the batch dims are addressed
  int64_t rows = 1;   ///< their product
  int64_t count = 1;  ///< how many indices there are: the product of `outer` behind the batch dims
  bool known = false; ///< when importing: each place has been checked
  mlir::Value
      indices; ///< i64 of (batch.., count); outside of the rows where one of an index's places is outside of its dim

  /// (batch.., along) and what stands behind the addressed dims of `shape`.
  llvm::SmallVector<int64_t> shapeOf(llvm::ArrayRef<int64_t> shape, int64_t along) const;
};
/// Input i addresses `shape` behind its first `batch` dims, which the indices share. A first column that counts along
/// its dim (`x[arange(b), i]`) addresses nothing: the dim is one more batch dim, which can be cut.
llvm::FailureOr<RowIndices> importRowIndices(NodeImporter &importer, size_t i, llvm::ArrayRef<int64_t> shape,
                                             int64_t batch = 0);

/// `part` with what `whole` has behind it along `dim`; along the others it is cut as the part is.
mlir::Value joinRest(NodeImporter &importer, mlir::Value part, mlir::Value whole, int64_t dim);

} // namespace par
