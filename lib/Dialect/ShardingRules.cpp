#include "par/Interfaces/ShardingRule.h"

#include "par/Dialect/Concerns.h"

#include "par/Interfaces/ShardingRule.cpp.inc"

namespace par {

void registerShardingRules(mlir::DialectRegistry &registry) {}

} // namespace par
