#pragma once

#include "mlir/IR/DialectRegistry.h"

// Interfaces of ops, one function a concern. Each is defined in lib/Dialect/<Concern>.cpp and calls one function a
// family, which is defined beside the family's ops: lib/Dialect/<Family>/<Concern>.cpp.

namespace par {

void registerShardingRules(mlir::DialectRegistry &registry);
void registerGradients(mlir::DialectRegistry &registry);
void registerDecompositions(mlir::DialectRegistry &registry);
void registerCosts(mlir::DialectRegistry &registry);
void registerTimes(mlir::DialectRegistry &registry);
void registerInterpretations(mlir::DialectRegistry &registry);
void registerLowerings(mlir::DialectRegistry &registry);
void registerOptimizers(mlir::DialectRegistry &registry);
void registerRanges(mlir::DialectRegistry &registry);

} // namespace par
