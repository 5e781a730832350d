// Softmax of rows and its gradient, f32, bf16 or f16. Both read a row twice; the second time it comes from
// the caches.
#include "Kernel.cuh"

namespace par::cuda {
namespace {

/// y may be x: a row is written only after all of its threads have read it for the sum.
template <typename T>
__device__ inline void softmax(const T *x, T *y, uint64_t rows, uint64_t cols) {
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const T *from = x + r * cols;
  T *to = y + r * cols;
  SumExp all = teamSumExp(from, cols);
  float scale = 1.0f / all.sum;
  uint64_t head = headOf<vectorOf<T>>(cols, from, to);
  forEach<vectorOf<T>, 2>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> values = load<N>(from + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      values[k] = expOf<T>(values[k] - all.max) * scale;
    store<N>(to + i, values);
  });
}

/// dx may be dy.
template <typename T>
__device__ inline void softmaxBackward(const T *y, const T *dy, T *dx, uint64_t rows, uint64_t cols) {
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const T *result = y + r * cols, *ct = dy + r * cols;
  T *to = dx + r * cols;
  uint64_t head = headOf<vectorOf<T>>(cols, result, ct, to);
  float dot = 0;
  forEach<vectorOf<T>, 2>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> a = load<N>(result + i), b = load<N>(ct + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      dot += a[k] * b[k];
  });
  dot = teamSum(dot);
  forEach<vectorOf<T>, 2>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> a = load<N>(result + i), b = load<N>(ct + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      b[k] = a[k] * (b[k] - dot);
    store<N>(to + i, b);
  });
}

} // namespace
} // namespace par::cuda

#define PAR_SOFTMAX(TYPE, T)                                                                                           \
  PAR_ENTRY(512) par_softmax##TYPE(const T *x, T *y, uint64_t rows, uint64_t cols) {                                   \
    par::cuda::softmax(x, y, rows, cols);                                                                              \
  }                                                                                                                    \
  PAR_ENTRY(512) par_softmax_backward##TYPE(const T *y, const T *dy, T *dx, uint64_t rows, uint64_t cols) {            \
    par::cuda::softmaxBackward(y, dy, dx, rows, cols);                                                                 \
  }

PAR_ROW_ENTRIES(PAR_SOFTMAX)
