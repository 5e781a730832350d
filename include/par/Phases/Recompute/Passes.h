#pragma once

#include "par/Plan/Model/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Recompute/Passes.h.inc"

/// The phase: pass and gate. The number of microbatches in flight on a stage follows from `schedule`.
void buildRecomputePipeline(mlir::OpPassManager &manager, const PlanRecompute &recompute, llvm::StringRef schedule,
                            llvm::StringRef device);
/// `par-opt --par-recompute`.
void registerRecomputePipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Recompute/Passes.h.inc"

} // namespace par
