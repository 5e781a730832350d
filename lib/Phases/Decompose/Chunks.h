// Chunks of what a collective moves: a tensor cut along one dim, and joined again.
#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// A dim of the whole tensor (gathered, or to be scattered), and how it is cut.
struct Cut {
  int64_t dim = 0;
  int64_t parts = 1; ///< along the collective's own dim: members, of whose parts each gives a share to a chunk

  /// How many elements each part has.
  int64_t extent(mlir::Type type) const { return getTensorType(type).getDimSize(dim) / parts; }
};

/// What one chunk of `chunks` has of a value, whose dim is cut as `cut` says.
mlir::Value takeChunk(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, Cut cut, int64_t chunk,
                      int64_t chunks);
/// The whole of what the chunks have.
mlir::Value joinChunks(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> chunks, Cut cut);

// Where ranks do not divide the gathered (scattered) dim, a slice takes its padding off behind the gather, and a pad
// puts it there in front of the scatter. Either is chunked with the product, along another dim.

/// The slice that alone reads a gather and takes off what pads the gathered dim, if there is one.
SliceOp trimOf(AllGatherOp gather);
/// The pad that a scatter alone reads and that fills up the scattered dim at its end, if there is one.
PadOp filledBy(ReduceScatterOp scatter);
/// What the slice or the pad (null: neither) makes of one chunk of its operand, which differs from the operand along
/// other dims than `dim`, the one that it changes.
mlir::Value fitChunk(mlir::OpBuilder &builder, mlir::Operation *fit, mlir::Value chunk, int64_t dim);

} // namespace par
