#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace par::codegen {

/// One expression a tensor dim, over the loops of a nest; dims past the loops are indices known only when
/// running.
using Index = llvm::SmallVector<mlir::AffineExpr>;

llvm::ArrayRef<int64_t> shapeOf(mlir::Value tensor);

/// `map` applied to the iteration.
Index applyMap(mlir::AffineMap map, llvm::ArrayRef<mlir::AffineExpr> iteration);

/// The index in a tensor of shape `to` of the element with `index` in its reshape of shape `from`. Equal dims stay as
/// they are, so loops over leading dims are still recognised.
Index reshapeIndex(llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to,
                   mlir::MLIRContext *context);

/// Row-major address in elements.
mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<int64_t> shape,
                           mlir::MLIRContext *context);

/// An index inside a linalg body as a function of the iteration. `makeDim` gives the expression of a value that is
/// known only at run time.
mlir::AffineExpr traceIndex(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> iteration,
                            llvm::function_ref<mlir::AffineExpr(mlir::Value)> makeDim);

/// The value that reshapes (collapse and expand) view; the value itself if it is no reshape.
mlir::Value stripReshapes(mlir::Value value);

/// The linalg.generic that defines a value, or null.
mlir::linalg::GenericOp genericOf(mlir::Value value);

} // namespace par::codegen
