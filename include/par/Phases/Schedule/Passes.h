#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Schedule/Passes.h.inc"

/// The phase: pass and gate.
void buildSchedulePipeline(mlir::OpPassManager &manager, const BuildProgramsPassOptions &options);
/// `par-opt --par-schedule`.
void registerSchedulePipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Schedule/Passes.h.inc"

} // namespace par
