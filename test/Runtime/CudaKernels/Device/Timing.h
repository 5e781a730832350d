// Times work on a GPU.
#pragma once

#include "par/cuda/driver/Gpu.h"

#include <cstdint>
#include <functional>

namespace par::toy {

/// Seconds that one `work` takes, of as many as fill 20 ms; the best of three.
double secondsOf(const cuda::Gpu &gpu, cuda::Stream stream, const std::function<void()> &work);

/// Prints operations, time and workspace of each attention of models, forward and backward; of those of at most so many
/// tokens.
void measureAttentions(uint64_t most);

} // namespace par::toy
