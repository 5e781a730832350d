// Queries on values and ops shared by the files of Kernels.
#pragma once

#include "par/Dialect/Attention.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Par.h"

namespace par {

/// Shape of a tensor, or of a buffer's value.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return getTensorType(value.getType()).getShape(); }

inline uint64_t bytesOf(mlir::Value value) { return getByteSize(getTensorType(value.getType())); }

inline bool isAttention(mlir::Operation *op) { return llvm::isa<AttentionOp, AttentionGradOp>(op); }

} // namespace par
