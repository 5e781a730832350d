#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace par::cpu {

/// Replaces every arith.extf from and arith.truncf to bf16 and f16 by integer arithmetic that rounds to nearest even
/// (IEEE 754-2019 4.3.1; NaN stays NaN): processors of some years only convert by a call of the compiler's library,
/// which no bundle has. From f64 the value is rounded to f32 first.
void expandFormats(mlir::ModuleOp module);

} // namespace par::cpu
