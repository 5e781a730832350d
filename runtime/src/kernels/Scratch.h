// Memory that builtin kernels need while they run.
#pragma once

#include <cstddef>

namespace par::kernels {

/// Memory of this thread, on a 64-byte boundary; as large as any kernel has needed. Its earlier content is lost.
std::byte *threadScratch(size_t bytes);

} // namespace par::kernels
