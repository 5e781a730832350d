// Where the passes of Annotate have their plan from.
#pragma once

#include "par/Phases/Annotate/Passes.h"

namespace par {

/// The given plan, or the one in `files`, completed with the names of `module`. Emits what is wrong with it.
mlir::FailureOr<ModelPlan> loadPlan(mlir::ModuleOp module, llvm::ArrayRef<std::string> files, const ModelPlan *given);

/// A pass that does to a module what its plan says: a plan that is given, or the one in the option `plan`.
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

/// Where the plan says something; the module's own location for a default.
mlir::Location planLocation(const Origin &origin, mlir::ModuleOp module);

/// A sharding of `rank` dims by a rule: the dims that it names over refined axes; all dims open unless it is
/// closed; unreduced where the value may stay a sum. `dimOf` says which dim of the tensor a dim of the rule is.
ShardingAttr buildSharding(const Plan &plan, const ResolvedShard &rule, int64_t rank, llvm::ArrayRef<int64_t> dimOf,
                           mlir::MLIRContext *context);

} // namespace par
