#include "par/Bundle/Bundle.h"

using namespace mlir;

namespace par {

/// How many rows or classes an integer operand of an op chooses among; 0 if it does not choose.
static int64_t choices(OpOperand &use) {
  Operation *user = use.getOwner();
  auto dim = user->getAttrOfType<IntegerAttr>("dim");
  if (isa<GatherOp, TakeOp>(user) && use.getOperandNumber() == 1)
    return cast<RankedTensorType>(user->getOperand(0).getType()).getDimSize(dim.getInt());
  if (isa<CrossEntropyOp>(user) && use.getOperandNumber() == 1)
    return cast<RankedTensorType>(user->getOperand(0).getType()).getShape().back();
  return 0;
}

/// The smallest number of choices over all uses, through ops that only move elements.
static int64_t limitOf(Value value) {
  int64_t limit = 0;
  auto lower = [&](int64_t other) {
    if (other > 0)
      limit = limit ? std::min(limit, other) : other;
  };
  for (OpOperand &use : value.getUses()) {
    lower(choices(use));
    if (isa<ReshapeOp, SliceOp, TransposeOp>(use.getOwner()))
      lower(limitOf(use.getOwner()->getResult(0)));
  }
  return limit;
}

std::map<std::string, int64_t> collectInputLimits(ModuleOp module) {
  std::map<std::string, int64_t> limits;
  for (StepOp step : module.getOps<StepOp>()) {
    if (!step.getInputs())
      continue;
    for (auto [name, argument] :
         llvm::zip(step.getInputs()->getAsRange<StringAttr>(), step.getBlock().getArguments())) {
      int64_t limit = limitOf(argument), &known = limits[name.str()];
      if (limit && (!known || limit < known))
        known = limit;
    }
  }
  return limits;
}

} // namespace par
