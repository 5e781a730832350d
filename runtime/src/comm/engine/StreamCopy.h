// Copies that leave the caches alone.
#pragma once

#include <cstddef>

namespace par::comm {

/// Bytes from which a result is written past the caches: a core's own cache does not hold it until it is read,
/// and products that run meanwhile keep what they have there. What is written past them is also not read first.
constexpr size_t streamedBytes = size_t(1) << 20;

/// As memcpy of any number of bytes, but past the caches. The bytes are there for other processors when it
/// returns.
void streamCopy(void *to, const void *from, size_t bytes);

} // namespace par::comm
