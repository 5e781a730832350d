#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Mark of a par.buffer that lies in the host's memory: `par.buffer @m state of "m" : tensor<4xf32> {host}`.
inline constexpr llvm::StringLiteral hostAttr = "host";

/// Mark of a par.buffer in which forward keeps a value for backward of the same microbatch.
inline constexpr llvm::StringLiteral savedAttr = "saved";

/// Whether a buffer lies in the host's memory. Each space has an arena, whose offsets begin at 0.
inline bool isOnHost(BufferOp buffer) { return buffer->hasAttr(hostAttr); }

} // namespace par
