#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"

#include "par/Dialect/Interfaces/Collective.h.inc"

namespace par {

/// The queue of a collective that runs beside compute; empty for any other op.
llvm::StringRef getQueue(mlir::Operation *op);

} // namespace par
