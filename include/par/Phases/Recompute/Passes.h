#pragma once

#include "par/Plan/Model/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Recompute/Passes.h.inc"

/// The phase: pass and gate. `schedule` says how many microbatches a stage has in flight.
void buildRecomputePipeline(mlir::OpPassManager &manager, const PlanRecompute &recompute, llvm::StringRef schedule,
                            llvm::StringRef device);
/// `par-opt --par-recompute`.
void registerRecomputePipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Recompute/Passes.h.inc"

} // namespace par
