#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Transposes an operand of a matmul whose contracted dims are not adjacent (expert and width in weights [expert, out,
/// width]), if no library call computes it otherwise and the copy costs little beside the matmul. `narrow` as in
/// formMatmul.
void joinContracted(BlockOp block, bool narrow);

} // namespace par
