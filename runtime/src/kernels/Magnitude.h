// The largest magnitude of values, to know before a transform whether all of its sums are finite.
#pragma once

#include <cstddef>

namespace par::kernels {

/// Infinite or NaN if one of the values is; a NaN counts as the largest.
float largestMagnitude(const float *values, size_t count);

} // namespace par::kernels
