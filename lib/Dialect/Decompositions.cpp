#include "par/Interfaces/Decomposable.h"

#include "par/Dialect/Concerns.h"

#include "par/Interfaces/Decomposable.cpp.inc"

namespace par {

void registerDecompositions(mlir::DialectRegistry &registry) {}

} // namespace par
