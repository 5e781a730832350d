#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Ops that become one fragment.
struct OpGroup {
  int64_t stage;
  FragmentKind kind;
  llvm::SmallVector<mlir::Operation *> ops;
};

/// The stage that makes a value of the old step. Inputs and variables are everywhere: -1.
int64_t home(mlir::Value value);

/// A loop's ops: forward stage by stage, then backward the other way. Clones cheap ops that both parts use.
llvm::SmallVector<OpGroup> groupLoop(LoopOp loop, int64_t stageCount);

/// Ops outside loops by (level, stage): the level rises where a value crosses to another stage.
/// Clones constants that several levels use.
llvm::SmallVector<OpGroup> groupBehind(llvm::ArrayRef<mlir::Operation *> ops, int64_t stageCount);

} // namespace par
