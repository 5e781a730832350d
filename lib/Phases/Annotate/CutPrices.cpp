// Prices of groups: from the kernels that they become, or op by op, where no later phase is asked (par-opt).
#include "CutCosts.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Annotate/GradientFlow.h"

using namespace mlir;

namespace par {

static format::DType formatOf(const Plan &plan) {
  return *plan.precision.compute == "bf16"  ? format::DType::BF16
         : *plan.precision.compute == "f16" ? format::DType::F16
                                            : format::DType::F32;
}

FailureOr<CutPrices> priceKernels(ModuleOp module, ArrayRef<Operation *> ops, ArrayRef<OpGroup> groups,
                                  const Plan &plan, const CutPricer &pricer) {
  for (Operation *op : ops)
    setStage(op, 0);
  OwningOpRef<ModuleOp> copy = module.clone();
  for (Operation *op : ops)
    setStage(op, -1);
  SmallVector<StageOp> stages(copy->getOps<StageOp>());
  StageOp kept =
      *llvm::min_element(stages, [](StageOp a, StageOp b) { return a.getRanks().size() < b.getRanks().size(); });
  int64_t ranks = plan.pipeline.meshes->empty() ? 1 : kept.getRanks().size();
  for (StageOp stage : stages)
    if (stage != kept)
      stage.erase();
  FailureOr<CutPrices> prices = pricer(*copy, nameGroups(groups));
  if (failed(prices))
    return failure();
  auto ofAll = [&](CutWork &work) {
    work = {work.forward * ranks, work.backward * ranks, work.gradient * ranks, work.update * ranks};
  };
  llvm::for_each(prices->groups, ofAll);
  for (CutBond &bond : prices->bonds)
    ofAll(bond.less);
  return prices;
}

CutPrices priceOps(StepOp step, ArrayRef<OpGroup> groups, const Plan &plan, const CostTable &costs) {
  GradientFlow flow(step);
  // If stages have meshes of their own, figures are of one rank for all.
  int64_t devices = std::max<int64_t>(1, plan.numDevices());
  int64_t ranks = plan.pipeline.meshes->empty() ? std::max<int64_t>(1, *plan.ranks / devices) : 1;
  int64_t share = plan.rounds() * ranks;
  CutPrices prices;
  for (const OpGroup &group : groups) {
    CutWork &work = prices.groups.emplace_back();
    for (Operation *op : group) {
      int64_t bytes = 0;
      for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults())))
        bytes += getByteSize(value);
      int64_t time = costs.local(flopsOf(op) / share, bytes / share, formatOf(plan)).ns;
      int64_t backward = plan.train ? flow.backward(op) : 0;
      work += {time, time * backward, backward == 2 ? time : 0, 0};
    }
  }
  return prices;
}

} // namespace par
