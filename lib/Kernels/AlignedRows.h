#ifndef PAR_LIB_KERNELS_ALIGNEDROWS_H
#define PAR_LIB_KERNELS_ALIGNEDROWS_H

#include "par/Dialect/Par.h"

namespace par {

/// Elements that a row of bf16 or f16 is kept in so that a GPU's products read 16 bytes at once: a multiple of 64 from
/// 512 on, of 8 from 64 on. Shorter rows stay, for padding would be a large part of them.
int64_t alignedRow(int64_t size);

/// True for a slice (null is none) that reads rows of bf16 or f16 without their padding. It costs nothing: who reads it reads the rows.
bool dropsPadding(mlir::Operation *op);

/// True for a pad that adds zeros behind rows, at least one.
bool padsRows(PadOp pad);

} // namespace par

#endif
