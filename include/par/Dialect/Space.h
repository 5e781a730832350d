#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Whether a buffer is in host memory. Each space has an arena, whose offsets begin at 0.
inline bool isOnHost(BufferOp buffer) { return buffer.getHost(); }

/// On a result of a forward: Recompute has chosen that it is in host memory until backward reads it.
inline constexpr llvm::StringLiteral movedAttr = "par.host";
/// Saved values of fewer elements stay on the device.
inline constexpr int64_t minMovedElements = 1024;

inline bool isMoved(FragmentOp forward, unsigned result) { return forward.getResultAttr(result, movedAttr) != nullptr; }

} // namespace par
