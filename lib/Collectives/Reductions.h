#ifndef PAR_LIB_COLLECTIVES_REDUCTIONS_H
#define PAR_LIB_COLLECTIVES_REDUCTIONS_H

#include "par/Dialect/Par.h"

namespace par {

/// What the runtime takes as one group.
inline constexpr size_t mostMembers = 64;

/// The op that makes the last operand; null if all come from outside.
mlir::Operation *lastOperand(AllReduceOp reduce);

/// The first op that needs the results: uses one, or touches a buffer that one has been stored to. Null if
/// none does. Stores of the results themselves are no need: they can follow the reduction.
mlir::Operation *firstNeed(AllReduceOp reduce);

/// All results are single numbers.
bool isScalar(AllReduceOp reduce);

/// The results are stored and not used otherwise.
bool onlyLeaves(AllReduceOp reduce);

/// Puts the reduction behind `place`, and stores of its results that stand before it behind it.
void moveBehind(AllReduceOp reduce, mlir::Operation *place);

} // namespace par

#endif
