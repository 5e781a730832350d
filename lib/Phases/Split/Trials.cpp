#include "Trials.h"

#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

void keepResults(StepOp step, function_ref<bool(StringRef)> keeps) {
  SmallVector<Value> results;
  SmallVector<Attribute> names;
  for (auto [result, name] :
       llvm::zip(step.getTerminator()->getOperands(), step.getOutputs()->getAsRange<StringAttr>()))
    if (keeps(name)) {
      results.push_back(result);
      names.push_back(name);
    }
  Builder builder(step.getContext());
  step.getTerminator()->setOperands(results);
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(), ValueRange(results).getTypes()));
  step.setOutputsAttr(builder.getArrayAttr(names));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBlock())))
    if (!isa<GradientOp>(op) && isOpTriviallyDead(&op))
      op.erase();
}

FailureOr<BatchTimes> timesQuietly(StepOp step, int64_t microbatches) {
  ScopedDiagnosticHandler quiet(step.getContext(), [](Diagnostic &) { return success(); });
  return BatchTimes::compute(step, microbatches);
}

} // namespace par
