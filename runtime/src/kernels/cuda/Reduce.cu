// Reductions in member order and copies, for ranks that share a device.
#include "Kernel.cuh"
#include "par/kernels/CudaBuiltins.h"

namespace par::cuda {
namespace {

enum : uint64_t { Sum, Max, Min, Prod };

/// An i1: 0 is false, all else true.
struct Truth {
  uint8_t byte;
};

/// The computed type: bf16 and f16 in f32, rounded once.
template <typename T>
struct Computed {
  using type = T;
  __device__ static T from(T x) { return x; }
  __device__ static T to(T x) { return x; }
};
template <typename T>
struct ComputedInF32 {
  using type = float;
  __device__ static float from(T x) { return toFloat(x); }
  __device__ static T to(float x) {
    T rounded;
    fromFloat(x, rounded);
    return rounded;
  }
};
template <>
struct Computed<bf16> : ComputedInF32<bf16> {};
template <>
struct Computed<f16> : ComputedInF32<f16> {};
template <>
struct Computed<Truth> {
  using type = uint32_t;
  __device__ static uint32_t from(Truth x) { return x.byte != 0; }
  __device__ static Truth to(uint32_t x) { return {uint8_t(x != 0)}; }
};

template <uint64_t op, typename T>
__device__ inline T combine(T a, T b) {
  if constexpr (op == Max)
    return b > a || b != b ? b : a;
  else if constexpr (op == Min)
    return b < a || b != b ? b : a;
  else if constexpr (std::is_integral_v<T>) { // wraps
    using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    return op == Prod ? T(U(a) * U(b)) : T(U(a) + U(b));
  } else
    return op == Prod ? a * b : a + b;
}

/// 16 bytes of every source before they are written: the result may lie over a source.
template <typename T, uint64_t op>
__device__ inline void reduceBy(T *out, const par::kernels::CudaSources &sources, unsigned members, uint64_t n) {
  constexpr int N = 16 / sizeof(T);
  bool aligned = misalignment<N>(out) == 0;
  for (unsigned member = 0; member < members; ++member)
    aligned = aligned && misalignment<N>(static_cast<const T *>(sources.at[member])) == 0;
  uint64_t first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, all = uint64_t(gridDim.x) * blockDim.x;
  forEach<N, 1>(n, aligned ? 0 : n, unsigned(first), unsigned(all), [&](auto width, uint64_t i) {
    constexpr int W = decltype(width)::value;
    Vector<typename Computed<T>::type, W> sum;
#pragma unroll 1
    for (unsigned member = 0; member < members; ++member) {
      Vector<T, W> next = loadRaw<W>(static_cast<const T *>(sources.at[member]) + i);
#pragma unroll
      for (int k = 0; k < W; ++k)
        sum[k] = member == 0 ? Computed<T>::from(next[k]) : combine<op>(sum[k], Computed<T>::from(next[k]));
    }
    Vector<T, W> result;
#pragma unroll
    for (int k = 0; k < W; ++k)
      result[k] = Computed<T>::to(sum[k]);
    storeRaw<W>(out + i, result);
  });
}

template <typename T>
__device__ inline void reduce(void *out, const par::kernels::CudaSources &sources, uint64_t members, uint64_t n,
                              uint64_t op) {
  auto *to = static_cast<T *>(out);
  auto count = static_cast<unsigned>(members);
  if (op == Sum)
    reduceBy<T, Sum>(to, sources, count, n);
  else if (op == Max)
    reduceBy<T, Max>(to, sources, count, n);
  else if (op == Min)
    reduceBy<T, Min>(to, sources, count, n);
  else
    reduceBy<T, Prod>(to, sources, count, n);
}

} // namespace
} // namespace par::cuda

#define PAR_REDUCE(NAME, TYPE)                                                                                         \
  PAR_ENTRY(256)                                                                                                       \
  par_reduce_##NAME(void *out, __grid_constant__ const par::kernels::CudaSources sources, uint64_t members,            \
                    uint64_t n, uint64_t op) {                                                                         \
    par::cuda::reduce<TYPE>(out, sources, members, n, op);                                                             \
  }

PAR_REDUCE(f64, double)
PAR_REDUCE(f32, float)
PAR_REDUCE(bf16, par::cuda::bf16)
PAR_REDUCE(f16, par::cuda::f16)
PAR_REDUCE(i64, int64_t)
PAR_REDUCE(i32, int32_t)
PAR_REDUCE(i16, int16_t)
PAR_REDUCE(i8, int8_t)
PAR_REDUCE(u8, uint8_t)
PAR_REDUCE(i1, par::cuda::Truth)

PAR_ENTRY(256)
par_copy(uint8_t *to, const uint8_t *from, uint64_t bytes) {
  using namespace par::cuda;
  uint64_t first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, all = uint64_t(gridDim.x) * blockDim.x;
  forEach<16>(bytes, headOf<16>(bytes, to, from), unsigned(first), unsigned(all), [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    storeRaw<N>(to + i, loadRaw<N>(from + i));
  });
}
