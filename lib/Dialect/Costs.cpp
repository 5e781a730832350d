#include "par/Interfaces/Cost.h"

#include "par/Dialect/Concerns.h"

#include "par/Interfaces/Cost.cpp.inc"

using namespace mlir;

namespace par {

static int64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() * std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1) : 0;
}

OpCost getCost(Operation *op) {
  OpCost cost;
  for (Value operand : op->getOperands())
    cost.bytes += bytesOf(operand);
  for (Value result : op->getResults())
    cost.bytes += bytesOf(result);
  if (auto model = dyn_cast<CostOpInterface>(op)) {
    cost.flops = model.getFlops();
    cost.fusable = model.isFusable();
  }
  return cost;
}

void registerAttentionCosts(DialectRegistry &registry);
void registerContractCosts(DialectRegistry &registry);
void registerElementwiseCosts(DialectRegistry &registry);
void registerIndexCosts(DialectRegistry &registry);
void registerLossCosts(DialectRegistry &registry);
void registerNormCosts(DialectRegistry &registry);
void registerOptimizerCosts(DialectRegistry &registry);
void registerReduceCosts(DialectRegistry &registry);
void registerShapeCosts(DialectRegistry &registry);
void registerWindowCosts(DialectRegistry &registry);

void registerCosts(DialectRegistry &registry) {
  registerAttentionCosts(registry);
  registerContractCosts(registry);
  registerElementwiseCosts(registry);
  registerIndexCosts(registry);
  registerLossCosts(registry);
  registerNormCosts(registry);
  registerOptimizerCosts(registry);
  registerReduceCosts(registry);
  registerShapeCosts(registry);
  registerWindowCosts(registry);
}

} // namespace par
