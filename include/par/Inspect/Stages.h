// Stages of a pipeline: their modules, and their shares of the work.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace par {

struct StageShare {
  /// Modules in order of their begin: `wte`, `h.0`. If a cut splits a module, the part that begins the stage, `layers.0
  /// from layers.0.blocks.1`. In a file without modules, the node that begins the stage.
  std::vector<std::string> modules;
  double work = 0; ///< floating-point operations of a step, forward and backward, by the ops' costs
};

/// Shares in a module after Annotate; empty with one stage.
std::vector<StageShare> findStageShares(mlir::ModuleOp module);

} // namespace par
