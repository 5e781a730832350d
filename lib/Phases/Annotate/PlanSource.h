// The plan of Annotate's passes.
#pragma once

#include "par/Phases/Annotate/Passes.h"

namespace par {

/// The given plan, or the one in `files`, completed with the names of `module`. Emits its errors.
mlir::FailureOr<ModelPlan> loadPlan(mlir::ModuleOp module, llvm::ArrayRef<std::string> files, const ModelPlan *given);

/// A pass that applies a plan to a module: a given plan, or the one in the option `plan`.
template <typename Base>
class PlanPass : public Base {
public:
  using Base::Base;
  const ModelPlan *given = nullptr;

protected:
  virtual mlir::LogicalResult apply(const ModelPlan &model) = 0;

private:
  void runOnOperation() final {
    mlir::FailureOr<ModelPlan> model = loadPlan(this->getOperation(), this->files, given);
    if (failed(model) || failed(apply(*model)))
      this->signalPassFailure();
  }
};

template <typename Pass>
std::unique_ptr<mlir::Pass> makePlanPass(const ModelPlan &plan) {
  auto pass = std::make_unique<Pass>();
  pass->given = &plan;
  return pass;
}

/// Emits errors of the plan at their places. Returns failure if there is any.
mlir::LogicalResult emitPlanErrors(const PlanErrors &errors, mlir::ModuleOp module);

/// The location of a plan's setting; the module's own location for a default.
mlir::Location planLocation(const Origin &origin, mlir::ModuleOp module);

/// A sharding of `rank` dims by a rule: its dims over refined axes; all dims open unless the rule is closed; unreduced
/// if the value may stay a partial sum. `dimOf` maps a dim of the rule to a dim of the tensor.
ShardingAttr buildSharding(const Plan &plan, const ResolvedShard &rule, int64_t rank, llvm::ArrayRef<int64_t> dimOf,
                           mlir::MLIRContext *context);

} // namespace par
