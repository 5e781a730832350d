#pragma once

#include "par/format/Program.h"

namespace par {

/// Moves a send whose run follows that of the block which computes its value into that block, right after the value,
/// where the block goes on to wait for reductions. Expects transfers on queues of their own. Changes blocks and runs.
void advanceSends(format::Program &program);

} // namespace par
