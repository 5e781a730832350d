// Gate of Train: a training step has one cotangent, one gradient a parameter, made from it, and writes only parameters,
// their states, counters and buffers.
#include "par/Dialect/Par.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_VERIFYTRAINPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

/// Checks one step after Train.
class TrainedStep {
public:
  explicit TrainedStep(StepOp step) : step(step), module(step->getParentOfType<ModuleOp>()) {}
  LogicalResult verify();

private:
  LogicalResult verifyOp(Operation &op);
  LogicalResult verifyGradient(GradientOp gradient);
  LogicalResult verifyWrite(WriteOp write);
  VariableOp find(FlatSymbolRefAttr name) { return module.lookupSymbol<VariableOp>(name.getAttr()); }

  StepOp step;
  ModuleOp module;
  CotangentOp cotangent;
  llvm::StringMap<GradientOp> gradients;
  llvm::StringMap<WriteOp> writes;
  DenseMap<Operation *, DenseSet<Operation *>> markers; ///< the markers that an op depends on
};

} // namespace

/// Tensor ops on plain tensors, reads, writes and scalars over stages; one cotangent.
LogicalResult TrainedStep::verifyOp(Operation &op) {
  if (!isTensorOp(&op) && !isa<ReadOp, WriteOp, StageAllReduceOp, ReturnOp>(op))
    return op.emitOpError() << "is not allowed in a step after Train";
  for (Type type : op.getResultTypes())
    if (!isa<RankedTensorType>(type))
      return op.emitOpError() << "gives " << type << " after Train, expected a tensor";
  DenseSet<Operation *> &own = markers[&op];
  for (Value operand : op.getOperands())
    if (Operation *source = operand.getDefiningOp())
      own.insert(markers[source].begin(), markers[source].end());
  if (auto marker = dyn_cast<CotangentOp>(op)) {
    if (cotangent)
      return marker.emitOpError() << "is the second one of its step";
    cotangent = marker;
  }
  if (isa<CotangentOp, GradientOp>(op))
    own.insert(&op);
  return success();
}

/// A gradient is of a parameter, is its only one, and depends on the loss's cotangent.
LogicalResult TrainedStep::verifyGradient(GradientOp gradient) {
  VariableOp variable = find(gradient.getVariableAttr());
  if (!variable || variable.getKind() != VariableKind::parameter)
    return gradient.emitOpError() << "is of @" << gradient.getVariable() << ", which is no parameter";
  if (!gradients.try_emplace(gradient.getVariable(), gradient).second)
    return gradient.emitOpError() << "is the second gradient of @" << gradient.getVariable();
  if (!cotangent || !markers[gradient].contains(cotangent))
    return gradient.emitOpError() << "does not depend on the loss's cotangent";
  return success();
}

/// Parameters that have a gradient, by a value that depends on it; their states; counters; buffers that move.
LogicalResult TrainedStep::verifyWrite(WriteOp write) {
  StringRef name = write.getVariable();
  if (!writes.try_emplace(name, write).second)
    return write.emitOpError() << "is the second write of @" << name;
  VariableOp variable = find(write.getVariableAttr());
  VariableKind kind = variable.getKind();
  if (kind == VariableKind::counter || kind == VariableKind::buffer)
    return success();
  StringRef parameter = kind == VariableKind::state ? *variable.getOf() : name;
  if (kind != VariableKind::parameter && kind != VariableKind::state)
    return write.emitOpError() << "changes @" << name << ", which is " << stringifyVariableKind(kind);
  Operation *source = write.getOperand().getDefiningOp();
  GradientOp gradient = gradients.lookup(parameter);
  if (!gradient || !source || !markers[source].contains(gradient))
    return write.emitOpError() << "changes @" << name << " by a value that does not depend on @" << parameter
                               << "'s gradient";
  return success();
}

LogicalResult TrainedStep::verify() {
  for (Operation &op : step.getBlock())
    if (failed(verifyOp(op)))
      return failure();
  if (!cotangent)
    return step.emitOpError() << "has no par.cotangent";
  for (auto gradient : step.getBlock().getOps<GradientOp>())
    if (failed(verifyGradient(gradient)))
      return failure();
  for (auto write : step.getBlock().getOps<WriteOp>())
    if (failed(verifyWrite(write)))
      return failure();
  for (auto &entry : gradients)
    if (!writes.contains(entry.getKey()))
      return entry.getValue().emitOpError() << "is there, but @" << entry.getKey() << " is not written";
  return success();
}

/// A step that does not train has neither backward part nor update.
static LogicalResult verifyForward(StepOp step) {
  for (Operation &op : step.getBlock())
    if (isa<CotangentOp, GradientOp, WriteOp, StageAllReduceOp>(op))
      return op.emitOpError() << "is allowed in @train only, not in @" << step.getSymName();
  return success();
}

namespace {
struct VerifyTrainPass : impl::VerifyTrainPassBase<VerifyTrainPass> {
  LogicalResult verify() {
    auto eval = getOperation().lookupSymbol<StepOp>("eval");
    if (eval && !getOperation().lookupSymbol<StepOp>("train"))
      return eval.emitOpError() << "has no @train beside it after Train";
    for (StepOp step : getOperation().getOps<StepOp>())
      if (failed(step.getSymName() == "train" ? TrainedStep(step).verify() : verifyForward(step)))
        return failure();
    return success();
  }
  void runOnOperation() override {
    if (failed(verify()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

} // namespace par
