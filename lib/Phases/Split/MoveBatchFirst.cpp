#include "BatchTimes.h"

#include "par/Dialect/Modes.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_MOVEBATCHFIRSTPASS
#include "par/Phases/Split/Passes.h.inc"

/// The batch dim of each output; nothing if the step cannot be sliced, which -par-slice-microbatches reports.
static std::optional<SmallVector<int64_t>> findBatchDims(StepOp step, int64_t microbatches) {
  ScopedDiagnosticHandler quiet(step.getContext(), [](Diagnostic &) { return success(); });
  FailureOr<BatchTimes> times = BatchTimes::compute(step, microbatches);
  if (failed(times))
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (Value result : step.getTerminator()->getOperands()) {
    BatchTime time = times->of(result);
    dims.push_back(time.time == Time::Sliced && time.outer == 1 ? time.dim : -1);
  }
  return dims;
}

static void moveBatchFirst(StepOp step, int64_t microbatches) {
  std::optional<SmallVector<int64_t>> dims = findBatchDims(step, microbatches);
  if (!dims || !step.getOutputs())
    return;
  OpBuilder builder(step.getTerminator());
  SmallVector<NamedAttribute> moved;
  SmallVector<Type> types;
  for (auto [operand, dim, name] :
       llvm::zip(step.getTerminator()->getOpOperands(), *dims, step.getOutputs()->getAsRange<StringAttr>())) {
    if (dim > 0) {
      Value value = operand.get();
      SmallVector<int64_t> order{dim};
      for (int64_t other = 0; other < getTensorType(value.getType()).getRank(); ++other)
        if (other != dim)
          order.push_back(other);
      operand.set(TransposeOp::create(builder, value.getLoc(), value, order));
      moved.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(dim)));
    }
    types.push_back(operand.get().getType());
  }
  if (moved.empty())
    return;
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(), types));
  step->setAttr(outputBatchDims, builder.getDictionaryAttr(moved));
  if (auto dims = step->getAttrOfType<DictionaryAttr>(batchOfOneAttr)) {
    NamedAttrList now(dims);
    for (NamedAttribute each : moved)
      now.set(each.getName(), builder.getI64IntegerAttr(0));
    step->setAttr(batchOfOneAttr, now.getDictionary(step.getContext()));
  }
}

namespace {
struct MoveBatchFirstPass : impl::MoveBatchFirstPassBase<MoveBatchFirstPass> {
  using MoveBatchFirstPassBase::MoveBatchFirstPassBase;

  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>())
      if (step.getSymName() == "predict")
        moveBatchFirst(step, microbatches);
  }
};
} // namespace

} // namespace par
