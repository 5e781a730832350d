#include "par/Dialect/Interfaces/Lowerable.h"

#include "par/Dialect/Concerns.h"

#include "par/Dialect/Interfaces/Lowerable.cpp.inc"

using namespace mlir;

namespace par {

void registerElementwiseLowerings(DialectRegistry &registry);
void registerShapeLowerings(DialectRegistry &registry);
void registerReduceLowerings(DialectRegistry &registry);
void registerContractLowerings(DialectRegistry &registry);
void registerIndexLowerings(DialectRegistry &registry);
void registerWindowLowerings(DialectRegistry &registry);

// Composites have no lowering of their own: Codegen decomposes them (par/Dialect/Interfaces/Decomposable.td) and fuses
// the parts.
void registerLowerings(DialectRegistry &registry) {
  registerElementwiseLowerings(registry);
  registerShapeLowerings(registry);
  registerReduceLowerings(registry);
  registerContractLowerings(registry);
  registerIndexLowerings(registry);
  registerWindowLowerings(registry);
}

} // namespace par
