// What a library's product may do to its sums before it writes them, found by values: whatever ops compute it.
#pragma once

#include "StridedView.h"
#include "par/Phases/Kernels/Matmul.h"

namespace par {

/// What the kernel does to `product`, a value of its body, on the way to its results: element by element one of the
/// library's epilogues, with a row that is added and another tensor of the same shape perhaps. None if it is another
/// function, or cannot be told.
std::optional<MatmulEpilogue> describeEpilogue(KernelOp kernel, mlir::Value product);

/// The epilogue of a kernel whose second result is the sum of an operand of the product `call`, its first, over the
/// product's contracted dims. None if it is something else.
std::optional<MatmulEpilogue> describeOperandSum(KernelOp kernel, const MatmulCall &call);

/// Follows transposes, reshapes and widenings up to an argument; the view of `value` in that argument's buffer.
std::optional<StridedView> traceArgument(mlir::Value value, mlir::BlockArgument &argument);

} // namespace par
