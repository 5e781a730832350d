#include "par/Interfaces/Cost.h"

#include "par/Dialect/Concerns.h"

#include "par/Interfaces/Cost.cpp.inc"

namespace par {

void registerCosts(mlir::DialectRegistry &registry) {}

} // namespace par
