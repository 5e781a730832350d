// Softmax of rows and its gradient. Both read a row twice; the second time it comes from the caches.
#include "Kernel.cuh"

/// y may be x: a row is written only after all of its threads have read it for the sum.
PAR_ENTRY(512)
par_softmax(const float *x, float *y, uint64_t rows, uint64_t cols) {
  using namespace par::cuda;
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const float *from = x + r * cols;
  float *to = y + r * cols;
  SumExp all = teamSumExp(from, cols);
  float scale = 1.0f / all.sum;
  forEach<4>(cols, headOf<4>(cols, from, to), threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> values = load<N>(from + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      values[k] = expf(values[k] - all.max) * scale;
    store<N>(to + i, values);
  });
}

/// dx may be dy.
PAR_ENTRY(512)
par_softmax_backward(const float *y, const float *dy, float *dx, uint64_t rows, uint64_t cols) {
  using namespace par::cuda;
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const float *result = y + r * cols, *ct = dy + r * cols;
  float *to = dx + r * cols;
  uint64_t head = headOf<4>(cols, result, ct, to);
  float dot = 0;
  forEach<4>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> a = load<N>(result + i), b = load<N>(ct + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      dot += a[k] * b[k];
  });
  dot = teamSum(dot);
  forEach<4>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> a = load<N>(result + i), b = load<N>(ct + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      b[k] = a[k] * (b[k] - dot);
    store<N>(to + i, b);
  });
}
