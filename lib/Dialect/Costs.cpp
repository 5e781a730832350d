#include "par/Dialect/Interfaces/Cost.h"

#include "par/Dialect/Concerns.h"

#include "par/Dialect/Interfaces/Cost.cpp.inc"

using namespace mlir;

namespace par {

int64_t getByteSize(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() * std::max<int64_t>(tensor.getElementTypeBitWidth() / 8, 1) : 0;
}

OpCost getCost(Operation *op) {
  OpCost cost;
  for (Value operand : op->getOperands())
    cost.bytes += getByteSize(operand.getType());
  for (Value result : op->getResults())
    cost.bytes += getByteSize(result.getType());
  if (auto model = dyn_cast<CostOpInterface>(op)) {
    cost.flops = model.getFlops();
    cost.fusable = model.isFusable();
  }
  return cost;
}

bool movesElements(Operation *op) { return !op->hasTrait<OpTrait::Elementwise>() && getCost(op).flops == 0; }

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
