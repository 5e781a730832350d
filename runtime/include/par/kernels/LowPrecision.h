// bf16 and f16 as they are stored, and the f32 in which they are computed. Rounding is to nearest, ties to
// even.
#pragma once

#include <bit>
#include <cstdint>

namespace par::kernels {

inline float fromBF16(uint16_t x) { return std::bit_cast<float>(uint32_t(x) << 16); }
inline uint16_t toBF16(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40); // NaN stays NaN
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float fromF16(uint16_t x) { return float(std::bit_cast<_Float16>(x)); }
inline uint16_t toF16(float x) { return std::bit_cast<uint16_t>(_Float16(x)); }

} // namespace par::kernels
