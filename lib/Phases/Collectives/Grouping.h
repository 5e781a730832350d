#pragma once

#include "par/Dialect/Beside.h"

namespace par {

/// Maximum size of a group in the runtime.
inline constexpr size_t maxMembers = 64;

/// The collectives of a block, in its order.
llvm::SmallVector<mlir::Operation *> collectivesOf(BlockOp block);

/// The op that makes the last operand; null if all come from outside.
mlir::Operation *lastOperand(mlir::Operation *collective);

/// The first op that needs the results: uses one, or touches a buffer that one has been stored to. Null if
/// none does. Ops that follow the collective are no need.
mlir::Operation *firstNeed(mlir::Operation *collective);

/// Whether the op can be anywhere after the collective whose result it uses: a store, or a launch that only adds to a
/// stored value. Neither its operands nor its results then live longer.
bool follows(mlir::Operation *user);

/// All results are single numbers.
bool isScalar(mlir::Operation *collective);

/// The results are stored and not used otherwise.
bool onlyLeaves(mlir::Operation *collective);

/// Bytes of the larger of operands and results.
int64_t bytesOf(mlir::Operation *collective);

/// The loads and few launches that make the operands, in the block's order, if all of them can be anywhere before: the
/// collective can then start at the block's begin.
std::optional<llvm::SmallVector<mlir::Operation *>> sourcesOf(mlir::Operation *collective);

/// Moves the collective after `place`; its followers that would now precede it move along.
void moveBehind(mlir::Operation *collective, mlir::Operation *place);

/// Moves the collective before `place`; its sources that would now follow it move along.
void moveBefore(mlir::Operation *collective, llvm::ArrayRef<mlir::Operation *> sources, mlir::Operation *place);

/// Moves users of `op` that now precede it, with their stores, after it.
void takeFollowersAlong(mlir::Operation *op);

} // namespace par
