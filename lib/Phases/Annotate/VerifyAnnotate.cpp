#include "par/Phases/Annotate/Passes.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYANNOTATEPASS
#include "par/Phases/Annotate/Passes.h.inc"

/// Axes of a sharding are axes of some stage, none of them twice.
static LogicalResult checkSharding(Operation *op, ShardingAttr sharding, ArrayRef<StageOp> stages) {
  SmallVector<StringAttr> seen;
  SmallVector<ArrayRef<StringAttr>> lists{sharding.getUnreduced()};
  for (DimShardingAttr dim : sharding.getDims())
    lists.push_back(dim.getAxes());
  for (ArrayRef<StringAttr> list : lists)
    for (StringAttr axis : list) {
      if (llvm::none_of(stages, [&](StageOp stage) { return stage.getMesh().getSize(axis) > 0; }))
        return op->emitOpError("is sharded over ") << axis << ", which is an axis of no stage";
      if (llvm::is_contained(seen, axis))
        return op->emitOpError("is sharded over ") << axis << " twice";
      seen.push_back(axis);
    }
  return success();
}

namespace {
struct VerifyAnnotatePass : impl::VerifyAnnotatePassBase<VerifyAnnotatePass> {
  LogicalResult check() {
    ModuleOp module = getOperation();
    SmallVector<StageOp> stages = llvm::to_vector(module.getOps<StageOp>());
    if (stages.empty())
      return module.emitError("has no stage after Annotate");
    for (auto variable : module.getOps<VariableOp>())
      if (variable.getSharding() && failed(checkSharding(variable, *variable.getSharding(), stages)))
        return failure();
    for (auto step : module.getOps<StepOp>()) {
      llvm::SmallBitVector used(stages.size());
      WalkResult result = step.walk([&](Operation *op) -> WalkResult {
        if (auto constrain = dyn_cast<ConstrainOp>(op))
          if (failed(checkSharding(op, constrain.getSharding(), stages)))
            return failure();
        std::optional<int64_t> stage = getStage(op);
        if (stage && *stage >= int64_t(stages.size()))
          return op->emitOpError("is on stage ") << *stage << " of " << stages.size();
        if (stage)
          used.set(*stage);
        return success();
      });
      if (result.wasInterrupted())
        return failure();
      if (stages.size() > 1 && !used.all())
        return step.emitOpError("has no op on stage ") << used.find_first_unset();
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(check()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

} // namespace par
