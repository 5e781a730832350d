#include "par/Interfaces/Interpretable.h"

#include "par/Dialect/Concerns.h"

#include "par/Interfaces/Interpretable.cpp.inc"

namespace par {

void registerInterpretations(mlir::DialectRegistry &registry) {}

} // namespace par
