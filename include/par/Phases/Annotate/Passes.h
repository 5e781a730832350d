// From a plan to stages, shardings of variables and values, and stage hints.
#pragma once

#include "par/Phases/Annotate/CutPrices.h"
#include "par/Plan/Names/NameTable.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <memory>

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Annotate/Passes.h.inc"

/// A completed plan with the names of the model that it is for.
struct ModelPlan {
  Plan plan;
  NameTable names;
};

/// The phase: passes and gate. The plan outlives the manager. `pricer` is asked where the plan leaves cuts to Par.
void buildAnnotatePipeline(mlir::OpPassManager &manager, const ModelPlan &plan, const CutPricer &pricer);
/// `par-opt --par-annotate`.
void registerAnnotatePipeline();

/// The passes by themselves; without a plan they read the files of their option `plan`.
std::unique_ptr<mlir::Pass> createCreateStagesPass(const ModelPlan &plan);
std::unique_ptr<mlir::Pass> createAnnotateVariablesPass(const ModelPlan &plan);
std::unique_ptr<mlir::Pass> createConstrainValuesPass(const ModelPlan &plan);
std::unique_ptr<mlir::Pass> createCutStagesPass(const ModelPlan &plan, const CutPricer &pricer);

/// Axes of the plan as axes of prime size, major first: {"tp"} of size 4 is {"tp.0", "tp.1"}, of size 1
/// nothing.
llvm::SmallVector<std::string> refineAxes(const Plan &plan, llvm::ArrayRef<std::string> axes);

/// The names that a module of IR knows: variables, and nodes and modules by the locations of its ops.
NameTable namesOfModule(mlir::ModuleOp module);

/// Floating-point operations of an op, as its room counts them; 0 of one that only marks a value.
int64_t flopsOf(mlir::Operation *op);

#define GEN_PASS_REGISTRATION
#include "par/Phases/Annotate/Passes.h.inc"

} // namespace par
