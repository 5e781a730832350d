#ifndef PAR_LIB_CODEGEN_EXPANDMATH_H
#define PAR_LIB_CODEGEN_EXPANDMATH_H

#include "mlir/IR/BuiltinOps.h"

namespace par::codegen {

/// Replaces exp, log, tanh, erf, sin, cos and pow by arithmetic that vectorises and needs no library. f32 to
/// a few units in the last place; narrower floats through f32. Fails on f64.
mlir::LogicalResult expandMath(mlir::ModuleOp module);

} // namespace par::codegen

#endif
