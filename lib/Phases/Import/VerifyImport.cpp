#include "par/Base/Provenance.h"
#include "par/Phases/Import/Passes.h"

namespace par {

#define GEN_PASS_DEF_VERIFYIMPORTPASS
#include "par/Phases/Import/Passes.h.inc"

using namespace mlir;

namespace {

LogicalResult checkVariable(VariableOp variable) {
  VariableKind kind = variable.getKind();
  if (kind != VariableKind::parameter && kind != VariableKind::buffer && kind != VariableKind::frozen &&
      kind != VariableKind::counter && kind != VariableKind::hyperparameter && kind != VariableKind::constant &&
      kind != VariableKind::carried)
    return variable.emitOpError("is of kind ") << stringifyVariableKind(kind) << ", which Import does not make";
  if (variable.getSharding() || variable.getAt())
    return variable.emitOpError("is sharded or placed after Import");
  return success();
}

/// Moving statistics and carried values are written where they are computed.
bool movesBuffer(Operation *op) {
  auto write = dyn_cast<WriteOp>(op);
  auto variable =
      write ? SymbolTable::lookupNearestSymbolFrom<VariableOp>(write, write.getVariableAttr()) : VariableOp();
  return variable && (variable.getKind() == VariableKind::buffer || variable.getKind() == VariableKind::carried);
}

LogicalResult checkStep(StepOp step) {
  if (step.getSymName() != "eval" && step.getSymName() != "predict")
    return step.emitOpError("is @") << step.getSymName() << ", expected @eval or @predict";
  WalkResult result = step.walk([](Operation *op) {
    bool isTensorOp = isPure(op) && !op->hasTrait<OpTrait::IsTerminator>();
    if (!isTensorOp && !isa<ReadOp, ReturnOp, StepOp>(op) && !movesBuffer(op)) {
      op->emitOpError("is in a step after Import");
      return WalkResult::interrupt();
    }
    if (llvm::any_of(op->getResultTypes(), [](Type type) { return !isa<RankedTensorType>(type); })) {
      op->emitOpError("has a result that is no tensor after Import");
      return WalkResult::interrupt();
    }
    // Constants lose their location where folding merges them.
    if (isTensorOp && !op->hasTrait<OpTrait::ConstantLike>() && !getProvenance(op->getLoc())) {
      op->emitOpError("has a location that names no ONNX node");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// A module that draws only in training, in a form that Import does not recognise, would draw in inference without
/// notice.
void warnOfDraws(StepOp step) {
  auto draws = step.getBlock().getOps<RandomBitsOp>();
  if (step.getSymName() == "predict" && !draws.empty())
    (*draws.begin()).emitWarning()
        << "draws random numbers where it predicts; export the module after eval() if it draws only in "
           "training";
}

struct VerifyImportPass : impl::VerifyImportPassBase<VerifyImportPass> {
  LogicalResult check() {
    int64_t steps = 0;
    for (Operation &op : getOperation().getOps()) {
      LogicalResult result = success();
      if (auto variable = dyn_cast<VariableOp>(op))
        result = checkVariable(variable);
      else if (auto step = dyn_cast<StepOp>(op))
        result = ++steps > 1 ? step.emitOpError("is the second step after Import") : checkStep(step);
      else
        result = op.emitOpError("is in a module after Import");
      if (failed(result))
        return failure();
      if (auto step = dyn_cast<StepOp>(op))
        warnOfDraws(step);
    }
    return steps ? success() : getOperation().emitError("has no step after Import");
  }

  void runOnOperation() override {
    if (failed(check()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace par
