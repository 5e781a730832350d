// Prices op by op, where no later phase is asked (par-opt): every op moves its bytes, and backward counts as many
// forwards as there are operands with a gradient.
#include "CutCosts.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Phases/Annotate/GradientFlow.h"

using namespace mlir;

namespace par {

int64_t flopsOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.getFlops() : 0;
}

static format::DType formatOf(const Plan &plan) {
  return *plan.precision.compute == "bf16"  ? format::DType::BF16
         : *plan.precision.compute == "f16" ? format::DType::F16
                                            : format::DType::F32;
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
