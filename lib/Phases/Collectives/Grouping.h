#pragma once

#include "par/Dialect/Beside.h"

namespace par {

/// What the runtime takes as one group.
inline constexpr size_t maxMembers = 64;

/// The collectives of a block, in its order.
llvm::SmallVector<mlir::Operation *> collectivesOf(BlockOp block);

/// The op that makes the last operand; null if all come from outside.
mlir::Operation *lastOperand(mlir::Operation *collective);

/// The first op that needs the results: uses one, or touches a buffer that one has been stored to. Null if
/// none does. Ops that follow the collective are no need.
mlir::Operation *firstNeed(mlir::Operation *collective);

/// Whether the op can stand anywhere behind the collective whose result it uses: a store, or a launch that only adds to
/// what is stored, so that neither operands nor results live longer for it.
bool follows(mlir::Operation *user);

/// All results are single numbers.
bool isScalar(mlir::Operation *collective);

/// The results are stored and not used otherwise.
bool onlyLeaves(mlir::Operation *collective);

/// Bytes of the larger of operands and results.
int64_t bytesOf(mlir::Operation *collective);

/// What the operands are made from, in the block's order, if that is loads and a few launches, which can stand anywhere
/// before: the collective can start as early as the block begins.
std::optional<llvm::SmallVector<mlir::Operation *>> sourcesOf(mlir::Operation *collective);

/// Puts the collective behind `place`, and what follows it and stands before it behind it.
void moveBehind(mlir::Operation *collective, mlir::Operation *place);

/// Puts the collective before `place`, with those of its sources that stand behind that.
void moveBefore(mlir::Operation *collective, llvm::ArrayRef<mlir::Operation *> sources, mlir::Operation *place);

/// Moves ops that use the results of `op`, stand before it and follow it behind it, with their stores.
void takeFollowersAlong(mlir::Operation *op);

} // namespace par
