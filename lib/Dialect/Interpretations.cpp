#include "par/Dialect/Interfaces/Interpretable.h"

#include "par/Dialect/Concerns.h"

#include "par/Dialect/Interfaces/Interpretable.cpp.inc"

namespace par {

void registerAttentionInterpretations(mlir::DialectRegistry &registry);
void registerElementwiseInterpretations(mlir::DialectRegistry &registry);
void registerShapeInterpretations(mlir::DialectRegistry &registry);
void registerReduceInterpretations(mlir::DialectRegistry &registry);
void registerContractInterpretations(mlir::DialectRegistry &registry);
void registerIndexInterpretations(mlir::DialectRegistry &registry);
void registerNormInterpretations(mlir::DialectRegistry &registry);
void registerLossInterpretations(mlir::DialectRegistry &registry);
void registerOptimizerInterpretations(mlir::DialectRegistry &registry);
void registerCollectiveInterpretations(mlir::DialectRegistry &registry);
void registerBesideInterpretations(mlir::DialectRegistry &registry);
void registerWindowInterpretations(mlir::DialectRegistry &registry);

void registerInterpretations(mlir::DialectRegistry &registry) {
  registerAttentionInterpretations(registry);
  registerElementwiseInterpretations(registry);
  registerShapeInterpretations(registry);
  registerReduceInterpretations(registry);
  registerContractInterpretations(registry);
  registerIndexInterpretations(registry);
  registerNormInterpretations(registry);
  registerLossInterpretations(registry);
  registerOptimizerInterpretations(registry);
  registerCollectiveInterpretations(registry);
  registerBesideInterpretations(registry);
  registerWindowInterpretations(registry);
}

} // namespace par
