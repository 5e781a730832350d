#include "par/Dialect/Concerns.h"
#include "par/Dialect/Par.h"

namespace par {

void registerDialect(mlir::DialectRegistry &registry) {
  registry.insert<ParDialect>();
  registerShardingRules(registry);
  registerGradients(registry);
  registerDecompositions(registry);
  registerCosts(registry);
  registerTimes(registry);
  registerInterpretations(registry);
  registerLowerings(registry);
  registerOptimizers(registry);
  registerRanges(registry);
}

} // namespace par
