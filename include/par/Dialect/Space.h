#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Whether a buffer is in host memory. Each space has an arena, whose offsets begin at 0.
inline bool isOnHost(BufferOp buffer) { return buffer.getHost(); }

} // namespace par
