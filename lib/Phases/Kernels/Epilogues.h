// Epilogues of a library's matmul: functions of its sums before they are written. Found by values, whichever ops
// compute them.
#pragma once

#include "StridedView.h"
#include "par/Phases/Kernels/Matmul.h"

namespace par {

/// The library's epilogue from a matmul, a value of the kernel's body, to the kernel's results: elementwise, perhaps
/// with an added row and another tensor of the same shape. None if the function is another one, or cannot be found.
std::optional<MatmulEpilogue> describeEpilogue(KernelOp kernel, mlir::Value product);

/// The epilogue of a kernel whose second result is the sum of an operand of the matmul `call`, its first, over the
/// contracted dims. None otherwise.
std::optional<MatmulEpilogue> describeBiasGradient(KernelOp kernel, const MatmulCall &call);

/// Follows transposes, reshapes and converts to f32 up to an argument; the view of `value` in that argument's buffer.
std::optional<StridedView> traceArgument(mlir::Value value, mlir::BlockArgument &argument);

} // namespace par
