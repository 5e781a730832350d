// Arithmetic shared by the builtin kernels, written so that the compiler vectorises it: fixed lanes for sums
// (the order of additions then depends neither on the machine's vector width nor on the compiler's mood) and
// branch-free polynomials.
#pragma once

#include <bit>
#include <cstdint>

/// Compiled once for each vector width; the dynamic linker picks the machine's.
#if defined(__x86_64__)
#define PAR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PAR_CLONES
#endif
/// The loop that follows carries nothing from one turn to the next; its operands are the same or disjoint.
#if defined(__clang__)
#define PAR_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PAR_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define PAR_INLINE inline __attribute__((always_inline))

namespace par::kernels {

inline constexpr int lanes = 16;

/// exp(x) to about 1 ulp of f32; below -87.3 it is 0, above 88.7 infinity, NaN stays NaN. Cody and Waite's
/// reduction by ln 2 and the minimax polynomial of Cephes' expf.
PAR_INLINE float expf32(float x) {
  float z = x < -87.33654f ? -87.33654f : x;
  z = z > 88.72283f ? 88.72283f : z;
  const float shift = 12582912.f; // 1.5 * 2^23: adding it rounds to an integer kept in the low bits
  float t = z * 1.44269504088896341f + shift;
  float n = t - shift;
  float r = z - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n in two steps, so that n = 128 does not overflow the exponent.
  uint32_t bits = std::bit_cast<uint32_t>(t);
  int32_t k = static_cast<int32_t>(bits << 10) >> 10;
  int32_t half = k >> 1;
  float a = std::bit_cast<float>((half + 127) << 23);
  float b = std::bit_cast<float>((k - half + 127) << 23);
  float e = p * a * b;
  e = x < -87.33654f ? 0.0f : e;
  e = x > 88.72283f ? std::bit_cast<float>(0x7f800000u) : e;
  return x != x ? x : e;
}

/// Prefetches the line 4 KiB after an address of a stream, to be read or written: the processor's own prefetcher starts
/// again at every page (lib/Phases/Codegen/CPU/PrefetchStreams.cpp has the figures). Beyond the end of a tensor it does
/// nothing.
PAR_INLINE void prefetchRead(const float *stream) {
  __builtin_prefetch(reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(stream) + 4096), 0, 3);
}
PAR_INLINE void prefetchWrite(const float *stream) {
  __builtin_prefetch(reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(stream) + 4096), 1, 3);
}

/// f(0) ... f(n - 1), which do not depend on each other; `coming(i)` before every 16.
template <typename F, typename P>
PAR_INLINE void laneLoop(uint64_t n, F f, P coming) {
  uint64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    coming(i);
    PAR_INDEPENDENT
    for (int l = 0; l < lanes; ++l)
      f(i + l);
  }
  for (; i < n; ++i)
    f(i);
}

/// Sum of f(0) ... f(n - 1), lane i adding every 16th from i, lanes summed pairwise.
template <typename T, typename F>
PAR_INLINE T laneSum(uint64_t n, F f) {
  T acc[lanes] = {};
  uint64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l)
      acc[l] += f(i + l);
  for (int l = 0; i < n; ++i, ++l)
    acc[l] += f(i);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l)
      acc[l] += acc[l + width];
  return acc[0];
}

/// Largest of x[0] ... x[n - 1]; NaN if one is; -infinity if n is 0.
PAR_INLINE float laneMax(const float *x, uint64_t n) {
  float acc[lanes];
  for (int l = 0; l < lanes; ++l)
    acc[l] = -__builtin_inff();
  // !(x <= acc) lets NaN in, and NaN then stays: nothing compares with it.
  uint64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    prefetchRead(x + i);
    for (int l = 0; l < lanes; ++l)
      acc[l] = ((acc[l] != acc[l]) | (x[i + l] <= acc[l])) ? acc[l] : x[i + l];
  }
  float best = acc[0];
  for (int l = 1; l < lanes; ++l)
    best = ((best != best) | (acc[l] <= best)) ? best : acc[l];
  for (; i < n; ++i)
    best = ((best != best) | (x[i] <= best)) ? best : x[i];
  return best;
}

} // namespace par::kernels
