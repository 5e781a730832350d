// Removes metrics that the plan's microbatches cannot add up: training must not fail for a number beside the loss.
#include "Trials.h"

#include "par/Dialect/Par.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DROPCOUPLEDMETRICSPASS
#include "par/Phases/Split/Passes.h.inc"

/// Whether the step would divide into microbatches with only these results. The step stays as it is.
static bool dividesWith(StepOp step, int64_t microbatches, function_ref<bool(StringRef)> keeps) {
  OpBuilder builder(step);
  auto trial = cast<StepOp>(builder.clone(*step));
  trial.setSymName("par.trial");
  keepResults(trial, keeps);
  bool good = succeeded(timesQuietly(trial, microbatches));
  trial.erase();
  return good;
}

/// The names of scalars that @eval returns after its loss.
static SmallVector<StringRef> metricsOf(StepOp eval) {
  SmallVector<StringRef> names;
  if (eval.getOutputs())
    for (StringAttr name : llvm::drop_begin(eval.getOutputs()->getAsRange<StringAttr>()))
      names.push_back(name);
  return names;
}

namespace {
struct DropCoupledMetricsPass : impl::DropCoupledMetricsPassBase<DropCoupledMetricsPass> {
  using DropCoupledMetricsPassBase::DropCoupledMetricsPassBase;

  void runOnOperation() override {
    auto eval = getOperation().lookupSymbol<StepOp>("eval");
    SmallVector<StringRef> metrics = eval ? metricsOf(eval) : SmallVector<StringRef>();
    if (metrics.empty())
      return;
    SmallVector<StepOp> steps(getOperation().getOps<StepOp>());
    DenseSet<StringRef> dropped;
    for (StepOp step : steps) {
      auto isMetric = [&](StringRef name) { return llvm::is_contained(metrics, name); };
      if (succeeded(timesQuietly(step, microbatches)) ||
          !dividesWith(step, microbatches, [&](StringRef name) { return !isMetric(name); }))
        continue; // -par-slice-microbatches says why
      for (StringRef metric : metrics)
        if (!dividesWith(step, microbatches, [&](StringRef name) { return name == metric || !isMetric(name); }))
          dropped.insert(metric);
    }
    for (StringRef metric : metrics)
      if (dropped.contains(metric))
        eval.emitWarning()
            << "\"" << metric << "\" is not computed: " << microbatches.getValue()
            << " microbatches cannot add it up; say batch.microbatches: 1, or make it a sum over samples";
    if (!dropped.empty())
      for (StepOp step : steps)
        keepResults(step, [&](StringRef name) { return !dropped.contains(name); });
  }
};
} // namespace

} // namespace par
