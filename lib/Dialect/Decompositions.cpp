#include "par/Dialect/Interfaces/Decomposable.h"

#include "par/Dialect/Concerns.h"

#include "par/Dialect/Interfaces/Decomposable.cpp.inc"

using namespace mlir;

namespace par {

void registerAttentionDecompositions(DialectRegistry &registry);
void registerElementwiseDecompositions(DialectRegistry &registry);
void registerNormDecompositions(DialectRegistry &registry);
void registerLossDecompositions(DialectRegistry &registry);
void registerOptimizerDecompositions(DialectRegistry &registry);
void registerWindowDecompositions(DialectRegistry &registry);

void registerDecompositions(DialectRegistry &registry) {
  registerAttentionDecompositions(registry);
  registerElementwiseDecompositions(registry);
  registerNormDecompositions(registry);
  registerLossDecompositions(registry);
  registerOptimizerDecompositions(registry);
  registerWindowDecompositions(registry);
}

} // namespace par
