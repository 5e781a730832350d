#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Propagate/Passes.h.inc"

/// The phase: passes and gate. Axes are refined, major first. A trained parameter, its accumulated gradient, and its
/// states with its update may each be sharded over axes of their own.
struct PropagateOptions {
  llvm::SmallVector<std::string> batchAxes;     ///< shard the batch of every input
  llvm::SmallVector<std::string> parameterAxes; ///< shard stored parameters
  llvm::SmallVector<std::string> gradientAxes;  ///< shard accumulated gradients
  llvm::SmallVector<std::string> stateAxes;     ///< spread states and updates
  int64_t minSize = 0;                          ///< parameters of fewer elements are not sharded over them
  bool gatherOnce = false;                      ///< spread parameters are gathered once a step, not for each use
  bool masters =
      false; ///< parameters that steps read rounded only are stored as they are updated, and gathered rounded
  /// How single parameters' gradients are accumulated, and how their states lie: `NAME=DIM:axis+axis;...;closed`, with
  /// `partial:axis+axis` over which a gradient stays a sum and `priority:N` of states.
  llvm::SmallVector<std::string> gradientRules, stateRules;
  llvm::SmallVector<std::string> priorities; ///< of single parameters' shardings, `NAME=N`
};
void buildPropagatePipeline(mlir::OpPassManager &manager, const PropagateOptions &options);
/// `par-opt --par-propagate`.
void registerPropagatePipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Propagate/Passes.h.inc"

} // namespace par
