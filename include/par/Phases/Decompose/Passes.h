// Collectives in the form that the runtime executes, split into chunks that overlap with the matmuls around them.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Decompose/Passes.h.inc"

/// The phase: passes and gate.
void buildDecomposePipeline(mlir::OpPassManager &manager, const DecomposeCollectivesPassOptions &options = {});
/// `par-opt --par-decompose`.
void registerDecomposePipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Decompose/Passes.h.inc"

} // namespace par
