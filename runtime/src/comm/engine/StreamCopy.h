// Copies that bypass the caches.
#pragma once

#include <cstddef>

namespace par::comm {

/// Results of at least this many bytes bypass the caches: a core's own cache would not hold them until they are read,
/// and concurrent matmuls keep their data there. Lines written this way are also not read first.
constexpr size_t streamedBytes = size_t(1) << 20;

/// As memcpy of any number of bytes, but past the caches. The bytes are there for other processors when it
/// returns.
void streamCopy(void *to, const void *from, size_t bytes);

} // namespace par::comm
