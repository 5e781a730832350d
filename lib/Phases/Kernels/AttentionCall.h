#pragma once

#include "StridedView.h"

#include "par/Phases/Kernels/Builtin.h"

namespace par {

/// The longest chain of layout ops, from the operand backwards, through which a library can read heads, [batch, heads,
/// rows, width], from its first operand. An op of which `isTaken` is true ends it.
llvm::SmallVector<mlir::Operation *> findReadMoves(mlir::Value heads,
                                                   llvm::function_ref<bool(mlir::Operation *)> isTaken);
/// The longest chain of layout ops after heads, each the only user of its operand, through which a library can write
/// them. A value of which `isRead` is true ends it.
llvm::SmallVector<mlir::Operation *> findWriteMoves(mlir::Value heads, llvm::function_ref<bool(mlir::Value)> isRead);

/// The ops from three results, through layout ops, to one concatenation of just these, which is last. Else empty.
llvm::SmallVector<mlir::Operation *> findJoin(mlir::ValueRange heads, llvm::function_ref<bool(mlir::Value)> isRead);

/// The one transpose by which all read a value but attentions and `besides`; null if there is none.
TransposeOp findOneTranspose(mlir::Value value, mlir::Operation *besides = nullptr);

/// The call of a kernel that is an attention, forward or backward, with layout ops of its operands and results.
std::optional<BuiltinCall> describeAttention(KernelOp kernel);

} // namespace par
