// Gradients of an imported case against central differences.
#pragma once

#include "NodeCase.h"
#include "par/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"

namespace par::test {

/// Makes @eval of @predict: float inputs become parameters, and the loss is the sum of all float outputs,
/// each element times a fixed number of its own. Differentiates it and holds each parameter's gradient
/// against central differences of the loss in float64 along random directions, near `inputs` (a little off
/// them, where kinks and ties mostly are). Refused: no float input reaches a float output, or the loss is not
/// finite there.
CaseResult checkGradients(mlir::ModuleOp module, const interp::Named &inputs);

} // namespace par::test
