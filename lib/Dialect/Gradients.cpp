#include "par/Interfaces/Differentiable.h"

#include "par/Dialect/Concerns.h"

#include "par/Interfaces/Differentiable.cpp.inc"

namespace par {

void registerGradients(mlir::DialectRegistry &registry) {}

} // namespace par
