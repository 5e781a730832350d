#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Moves an operand of products over several dims that lie apart in it, as expert and width do in weights [expert, out,
/// width], where no library would compute them else and the copy costs little beside the product. `narrow` as of
/// formProduct.
void joinContracted(BlockOp block, bool narrow);

} // namespace par
