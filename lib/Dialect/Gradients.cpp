#include "par/Dialect/Interfaces/Differentiable.h"

#include "par/Dialect/Concerns.h"

#include "par/Dialect/Interfaces/Differentiable.cpp.inc"

using namespace mlir;

namespace par {

void registerAttentionGradients(DialectRegistry &registry);
void registerElementwiseGradients(DialectRegistry &registry);
void registerShapeGradients(DialectRegistry &registry);
void registerReduceGradients(DialectRegistry &registry);
void registerContractGradients(DialectRegistry &registry);
void registerIndexGradients(DialectRegistry &registry);
void registerNormGradients(DialectRegistry &registry);
void registerLossGradients(DialectRegistry &registry);
void registerWindowGradients(DialectRegistry &registry);

void registerGradients(DialectRegistry &registry) {
  registerAttentionGradients(registry);
  registerElementwiseGradients(registry);
  registerShapeGradients(registry);
  registerReduceGradients(registry);
  registerContractGradients(registry);
  registerIndexGradients(registry);
  registerNormGradients(registry);
  registerLossGradients(registry);
  registerWindowGradients(registry);
}

} // namespace par
