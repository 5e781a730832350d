// Shared by the CUDA kernels: 16-byte accesses, teams of threads that share a row, and their reductions.
//
// The same sources are compiled as ordinary C++ against an emulation of a block of threads (test/Runtime/CudaKernels),
// so shared memory is declared by macros. Every result depends only on the operands: no atomics, sums in a fixed order.
#pragma once

#include "Sizes.h"

#include <cfloat>
#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
/// T name[count] in shared memory, and the dynamic shared memory as T name[].
#define PAR_SHARED(T, name, count) __shared__ T name[count]
#define PAR_DYNAMIC_SHARED(T, name) extern __shared__ __align__(16) T name[]
#else
#include "Emulation.h"
#endif

/// An entry of the image; `threads` is the largest block it is launched with. Half the threads that a chip
/// holds at least: up to 64 registers, so that none spill.
#define PAR_ENTRY(threads) extern "C" __global__ void __launch_bounds__(threads, 1024 / (threads))

/// Entries for rows in f32, bf16 and f16.
#define PAR_ROW_ENTRIES(ENTRY) ENTRY(, float) ENTRY(_bf16, par::cuda::bf16) ENTRY(_f16, par::cuda::f16)

namespace par::cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;

inline constexpr unsigned warpLanes = 32, wholeWarp = 0xffffffffu;

/// Elements of 16 bytes.
template <typename T>
inline constexpr int vectorOf = 16 / sizeof(T);

/// A real immediate.
__device__ inline double real(uint64_t bits) { return __longlong_as_double(static_cast<long long>(bits)); }

template <typename T>
__device__ inline T smaller(T a, T b) {
  return b < a ? b : a;
}

// --- Memory ---

__device__ inline float toFloat(float x) { return x; }
__device__ inline float toFloat(bf16 x) { return __bfloat162float(x); }
__device__ inline float toFloat(f16 x) { return __half2float(x); }
__device__ inline void fromFloat(float x, float &to) { to = x; }
__device__ inline void fromFloat(float x, bf16 &to) { to = __float2bfloat16_rn(x); }
__device__ inline void fromFloat(float x, f16 &to) { to = __float2half_rn(x); }

/// N elements that are moved together.
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Vector {
  T at[N];
  __device__ T &operator[](int k) { return at[k]; }
  __device__ const T &operator[](int k) const { return at[k]; }
};

/// N elements as they are stored.
template <int N, typename T>
__device__ inline Vector<T, N> loadRaw(const T *from) {
  return *reinterpret_cast<const Vector<T, N> *>(from);
}
/// Writes to global memory in words of up to 16 bytes; left to itself the compiler stores element by element.
template <int N, typename T>
__device__ inline void storeRaw(T *to, const Vector<T, N> &values) {
  constexpr size_t bytes = sizeof(values);
  if constexpr (bytes % 8 == 0) {
    using Word = std::conditional_t<bytes % 16 == 0, uint4, uint2>;
    Word words[bytes / sizeof(Word)];
    memcpy(words, &values, bytes);
#pragma unroll
    for (size_t i = 0; i < bytes / sizeof(Word); ++i)
      __stwb(reinterpret_cast<Word *>(to) + i, words[i]);
  } else {
    *reinterpret_cast<Vector<T, N> *>(to) = values;
  }
}

/// N elements, computed with in f32.
template <int N, typename T>
__device__ inline Vector<float, N> load(const T *from) {
  Vector<T, N> raw = loadRaw<N>(from);
  Vector<float, N> values;
#pragma unroll
  for (int k = 0; k < N; ++k)
    values[k] = toFloat(raw[k]);
  return values;
}
template <int N, typename T>
__device__ inline void store(T *to, const Vector<float, N> &values) {
  Vector<T, N> raw;
#pragma unroll
  for (int k = 0; k < N; ++k)
    fromFloat(values[k], raw[k]);
  storeRaw<N>(to, raw);
}

template <int N>
struct Width {
  static constexpr int value = N;
};

/// Elements from the last multiple of N elements to p.
template <int N, typename T>
__device__ inline unsigned misalignment(const T *p) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(p) / sizeof(T) % N);
}

/// Elements before the first at which accesses of N elements are aligned in all of the arrays; n if there is
/// none.
template <int N, typename T, typename... Others>
__device__ inline uint64_t headOf(uint64_t n, const T *first, const Others *...others) {
  unsigned past = misalignment<N>(first);
  bool same = true;
  ((same = same && misalignment<N>(others) == past), ...);
  return same ? smaller<uint64_t>((N - past) % N, n) : n;
}

/// Calls body(Width<N>, i) or body(Width<1>, i) so that [0, n) is covered by `lanes` threads, of which this
/// is `lane`, N elements at a time from `head` on. Every thread meets the same elements each time it is
/// called so.
template <int N, int unroll = 4, typename Body>
__device__ inline void forEach(uint64_t n, uint64_t head, unsigned lane, unsigned lanes, Body body) {
  for (uint64_t i = lane; i < head; i += lanes)
    body(Width<1>(), i);
  uint64_t tail = head + (n - head) / N * N;
#pragma unroll(unroll)
  for (uint64_t i = head + uint64_t(lane) * N; i < tail; i += uint64_t(lanes) * N)
    body(Width<N>(), i);
  for (uint64_t i = tail + lane; i < n; i += lanes)
    body(Width<1>(), i);
}

// --- Teams: a row belongs to the threads of one y of the block. A warp each, or the whole block for one. ---

/// The row of this thread's team.
__device__ inline uint64_t teamRow() { return uint64_t(blockIdx.x) * blockDim.y + threadIdx.y; }

__device__ inline float shuffleDown(float x, unsigned by) { return __shfl_down_sync(wholeWarp, x, by); }
__device__ inline double shuffleDown(double x, unsigned by) { return __shfl_down_sync(wholeWarp, x, by); }
__device__ inline float shuffleFirst(float x) { return __shfl_sync(wholeWarp, x, 0); }
__device__ inline double shuffleFirst(double x) { return __shfl_sync(wholeWarp, x, 0); }

/// All threads of a warp get the combination of their values, by the same tree each time.
template <typename T, typename Combine>
__device__ inline T warpReduce(T value, Combine combine) {
#pragma unroll
  for (unsigned by = warpLanes / 2; by > 0; by /= 2)
    value = combine(value, shuffleDown(value, by));
  return shuffleFirst(value);
}

/// All threads of a team get the combination of their values. `identity` combines to the other value.
template <typename T, typename Combine>
__device__ inline T teamReduce(T value, T identity, Combine combine) {
  value = warpReduce(value, combine);
  if (blockDim.x == warpLanes)
    return value;
  PAR_SHARED(T, ofWarps, 32);
  unsigned lane = threadIdx.x % warpLanes, warp = threadIdx.x / warpLanes;
  __syncthreads(); // results of an earlier reduction have been read
  if (lane == 0)
    ofWarps[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / warpLanes ? T(ofWarps[lane]) : identity;
  return warpReduce(value, combine);
}

__device__ inline float teamSum(float value) {
  return teamReduce(value, 0.0f, [](float a, float b) { return a + b; });
}
__device__ inline double teamSum(double value) {
  return teamReduce(value, 0.0, [](double a, double b) { return a + b; });
}

/// The larger; NaN if one is.
__device__ inline float larger(float a, float b) { return a != a || b <= a ? a : b; }

/// exp(x) for terms that come from T: as exact as f32 is for f32; with the chip's own exp2, good to about
/// 1e-6, for bf16 and f16, whose rounding is a thousand times that and whose bytes leave no time for more.
template <typename T>
__device__ inline float expOf(float x) {
  if constexpr (sizeof(T) < sizeof(float))
    return __expf(x);
  else
    return expf(x);
}

/// A sum of exp(x - max), for sums that learn the largest term on the way. max begins as the lowest finite
/// number, so that terms of -infinity, of which masks make whole rows, add 0 and not NaN.
struct SumExp {
  float max, sum;

  __device__ static SumExp none() { return {-FLT_MAX, 0.0f}; }

  /// Adds N terms that come from T.
  template <typename T, int N>
  __device__ void add(const Vector<float, N> &x) {
    float top = x[0];
#pragma unroll
    for (int k = 1; k < N; ++k)
      top = fmaxf(top, x[k]);
    if (top > max) {
      sum *= expf(max - top);
      max = top;
    }
#pragma unroll
    for (int k = 0; k < N; ++k)
      sum += expOf<T>(x[k] - max);
  }
};

__device__ inline SumExp shuffleDown(SumExp x, unsigned by) { return {shuffleDown(x.max, by), shuffleDown(x.sum, by)}; }
__device__ inline SumExp shuffleFirst(SumExp x) { return {shuffleFirst(x.max), shuffleFirst(x.sum)}; }

/// The row's sum of exponentials, in one pass, in every thread of the team.
template <typename T>
__device__ inline SumExp teamSumExp(const T *row, uint64_t n) {
  constexpr int N = vectorOf<T>;
  SumExp own = SumExp::none();
  forEach<N>(n, headOf<N>(n, row), threadIdx.x, blockDim.x,
             [&](auto width, uint64_t i) { own.add<T>(load<decltype(width)::value>(row + i)); });
  return teamReduce(own, SumExp::none(), [](SumExp a, SumExp b) {
    float max = fmaxf(a.max, b.max);
    return SumExp{max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
  });
}

} // namespace par::cuda
