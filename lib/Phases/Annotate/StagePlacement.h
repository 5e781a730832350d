// The ops of a step that are on stages, and the stage of each.
#pragma once

#include "par/Phases/Annotate/Passes.h"

namespace par {

class StagePlacement {
public:
  /// Finds the ops to be placed: those that a parameter, trained or frozen, flows into. Ops that depend only on data
  /// are placed at their use instead.
  StagePlacement(StepOp step, mlir::ModuleOp module);

  llvm::ArrayRef<mlir::Operation *> ops() const { return placed; }
  bool isWeight(ReadOp read) const;
  /// The op is on this stage or on a later one.
  void hint(mlir::Operation *op, int64_t stage) { hints[op] = std::max(hints.lookup(op), stage); }
  int64_t hintOf(mlir::Operation *op) const { return hints.lookup(op); }
  /// Gives each op its stage: an op that depends on inputs or on placed ops is after the last hint that it depends on;
  /// others join their first user.
  void assign(int64_t numStages);
  int64_t stageOf(mlir::Operation *op) const { return stages.lookup(op); }

private:
  mlir::ModuleOp module;
  std::vector<mlir::Operation *> placed;          ///< in order
  llvm::DenseMap<mlir::Operation *, bool> active; ///< whether a graph input flows into it
  llvm::DenseMap<mlir::Operation *, int64_t> hints, stages;
};

} // namespace par
