// Chunks of a collective's value: a tensor split along one dim, and joined again.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// A dim of the whole tensor (gathered, or to be scattered), and how it is split.
struct Cut {
  int64_t dim = 0;
  int64_t parts = 1; ///< along the collective's own dim: members, of whose parts each gives a share to a chunk

  /// Elements of each part.
  int64_t extent(mlir::Type type) const { return getTensorType(type).getDimSize(dim) / parts; }
};

/// One chunk of `chunks` of a value, whose dim is split as `cut` says.
mlir::Value takeChunk(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, Cut cut, int64_t chunk,
                      int64_t chunks);
/// Joins the chunks again.
mlir::Value joinChunks(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> chunks, Cut cut);

// If the ranks do not divide the gathered (scattered) dim, a slice after the gather removes the padding, and a pad
// before the scatter adds it. Either is split into chunks with the matmul, along another dim.

/// The slice that is the only user of a gather and removes padding of the gathered dim, if there is one.
SliceOp trimOf(AllGatherOp gather);
/// The pad whose only user is the scatter and that fills up the scattered dim at its end, if there is one.
PadOp filledBy(ReduceScatterOp scatter);
/// Applies the slice or the pad (null: neither), which changes only `dim`, to one chunk of its operand, which is split
/// along another dim.
mlir::Value fitChunk(mlir::OpBuilder &builder, mlir::Operation *fit, mlir::Value chunk, int64_t dim);

} // namespace par
