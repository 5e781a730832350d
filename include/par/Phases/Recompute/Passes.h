#pragma once

#include "par/Phases/Recompute/Recompute.h"
#include "par/Plan/Model/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Recompute/Passes.h.inc"

/// Passes that also leave their outcomes in `outcomes`; null: nowhere.
std::unique_ptr<mlir::Pass> createRecomputeValuesPass(const RecomputeValuesPassOptions &options,
                                                      RecomputeOutcomes *outcomes);
std::unique_ptr<mlir::Pass> createRecomputeToFitPass(const RecomputeToFitPassOptions &options,
                                                     RecomputeOutcomes *outcomes);

/// The phase: passes and gate. `outcomes` as above; empty if nothing is to be recomputed.
void buildRecomputePipeline(mlir::OpPassManager &manager, const Plan &plan, RecomputeOutcomes *outcomes = nullptr);
/// `par-opt --par-recompute`.
void registerRecomputePipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Recompute/Passes.h.inc"

} // namespace par
