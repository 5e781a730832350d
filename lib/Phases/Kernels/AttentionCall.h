#pragma once

#include "StridedView.h"

#include "par/Phases/Kernels/Builtin.h"

namespace par {

/// The longest run of movements from which a library can read heads, [batch, heads, rows, width], where they begin:
/// from the operand backwards. Those of which `isTaken` is true end it.
llvm::SmallVector<mlir::Operation *> findReadMoves(mlir::Value heads,
                                                   llvm::function_ref<bool(mlir::Operation *)> isTaken);
/// The longest run behind heads that nobody else reads, behind which a library can write them. Values of which `isRead`
/// is true end it.
llvm::SmallVector<mlir::Operation *> findWriteMoves(mlir::Value heads, llvm::function_ref<bool(mlir::Value)> isRead);

/// Where three results, moved, are all that one concatenation joins: all the ops up to that, which comes last. Else
/// none.
llvm::SmallVector<mlir::Operation *> findJoin(mlir::ValueRange heads, llvm::function_ref<bool(mlir::Value)> isRead);

/// The one transpose by which all read a value but attentions and `besides`; null if there is none.
TransposeOp findOneTranspose(mlir::Value value, mlir::Operation *besides = nullptr);

/// The call of a kernel that is an attention, forward or backward, with movements of its operands and results.
std::optional<BuiltinCall> describeAttention(KernelOp kernel);

} // namespace par
