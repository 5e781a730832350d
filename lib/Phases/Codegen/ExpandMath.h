#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace par::codegen {

/// Replaces exp, log, tanh, erf, sin, cos and pow by arithmetic that vectorises and needs no library: of f32 and f64 to
/// a few units in the last place, of narrower floats through f32.
void expandMath(mlir::ModuleOp module);

} // namespace par::codegen
