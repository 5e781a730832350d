#include "Magnitude.h"

#include "Lanes.h"

#include <algorithm>
#include <bit>

namespace par::kernels {

/// As integers, magnitudes are in the order of their values, NaN beyond all.
PAR_CLONES static uint32_t largestBits(const float *values, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  return largest;
}

float largestMagnitude(const float *values, size_t count) { return std::bit_cast<float>(largestBits(values, count)); }

} // namespace par::kernels
