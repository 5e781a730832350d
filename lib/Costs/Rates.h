// Amounts over rates.
#pragma once

#include <algorithm>
#include <cstdint>

namespace par {

/// ceil(amount / perMicrosecond) in ns, at most 2^56 (two years).
inline int64_t nanoseconds(__int128 amount, int64_t perMicrosecond) {
  __int128 time = (amount * 1000 + perMicrosecond - 1) / perMicrosecond;
  return static_cast<int64_t>(std::min(time, static_cast<__int128>(1) << 56));
}

} // namespace par
