#pragma once

#include "par/Dialect/Par.h"

#include "llvm/ADT/SetVector.h"

namespace par {

/// Size to which a row of bf16 or f16 is padded so that a GPU's matmuls read 16 bytes at once: a multiple of 64 from
/// 512 on, of 8 from 64 on. Shorter rows are not padded: padding would be a large part of them.
int64_t alignedRow(int64_t size);

/// True for a slice (null is none) that reads rows of bf16 or f16 without their padding. It costs nothing:
/// its users read the rows in place.
bool dropsPadding(mlir::Operation *op);

/// The first elements of `padded` along each dim: those of `like`'s shape.
SliceOp dropPadding(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value padded, mlir::Value like);
/// True for a slice of first elements.
bool isOfFirst(SliceOp slice);

/// True for a pad that appends zeros to rows, at least one.
bool padsRows(PadOp pad);

/// Values of a program to pad, found before anything is changed.
struct RowPlan {
  /// bf16 and f16 values that are padded along their last dim.
  llvm::SetVector<mlir::Value> rows;
  /// Temporary buffers that hold only rows.
  llvm::SmallVector<BufferOp> buffers;
  /// Converts that round weights, which are padded with zeros in f32 before.
  llvm::DenseSet<mlir::Operation *> weights;
  /// Slices that drop the padding of gathered weights: they become copies with zeros appended.
  llvm::DenseSet<mlir::Operation *> copied;
  /// Temporary buffers that hold rounded weights for the products of a step, and the dim, not the last, that is longer.
  llvm::StringMap<int64_t> weightBuffers;
  /// Matmuls that also sum the zeros at the end of these dims of their operands.
  struct Contraction {
    DotOp dot;
    int64_t lhs, rhs;
  };
  llvm::SmallVector<Contraction> contractions;
  /// Reductions in f32 that read whole longer rows.
  llvm::SmallVector<ReduceOp> reductions;
  /// By value and dim, whether the op that computes the value can compute it padded along that dim.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, bool> longer;
};
RowPlan planRows(ProgramOp program);

inline int64_t lastDim(mlir::Value value) { return getTensorType(value.getType()).getRank() - 1; }
/// The operand's dim that a dim of the result is, whole: none if the reshape joins or splits it.
std::optional<int64_t> findSource(ReshapeOp reshape, int64_t dim);
/// The operand's dim that a dim of the result is; none if the operand is repeated along it.
std::optional<int64_t> findSource(BroadcastInDimOp broadcast, int64_t dim);
/// The operand of a matmul, and its dim, from which a dim of the result comes; none for batch dims.
std::optional<std::pair<unsigned, int64_t>> findFree(DotOp dot, int64_t dim);

} // namespace par
