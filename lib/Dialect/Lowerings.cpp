#include "par/Interfaces/Lowerable.h"

#include "par/Dialect/Concerns.h"

#include "par/Interfaces/Lowerable.cpp.inc"

namespace par {

void registerLowerings(mlir::DialectRegistry &registry) {}

} // namespace par
