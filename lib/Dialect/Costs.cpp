#include "par/Dialect/Interfaces/Cost.h"

#include "par/Dialect/Concerns.h"

#include "par/Dialect/Interfaces/Cost.cpp.inc"

using namespace mlir;

namespace par {

OpCost getCost(Operation *op) {
  OpCost cost;
  cost.bytes = getByteSize(op->getOperands()) + getByteSize(op->getResults());
  if (auto model = dyn_cast<CostOpInterface>(op)) {
    cost.flops = model.getFlops();
    cost.fusable = model.isFusable();
  }
  return cost;
}

bool movesElements(Operation *op) { return !op->hasTrait<OpTrait::Elementwise>() && getCost(op).flops == 0; }

void registerAttentionCosts(DialectRegistry &registry);
void registerCollectiveCosts(DialectRegistry &registry);
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
  registerCollectiveCosts(registry);
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
