// Cross entropy per token, whole or by vocabulary shard, its gradient, and the largest of a row. Logits and
// their gradient are f32, bf16 or f16; all else is f32.
#include "Kernel.cuh"

namespace par::cuda {
namespace {

/// The classes that one shard holds.
struct Shard {
  int64_t first;
  uint64_t count; ///< without padding

  __device__ Shard(uint64_t cols, uint64_t shard, uint64_t total) : first(static_cast<int64_t>(shard * cols)) {
    count = shard * cols >= total ? 0 : smaller(cols, total - shard * cols);
  }
  /// Column of a label, or -1 if it is not here or is the ignored one.
  __device__ int64_t column(int64_t label, int64_t ignore) const {
    int64_t at = label - first;
    return label == ignore || at < 0 || at >= static_cast<int64_t>(count) ? -1 : at;
  }
};

template <typename T>
__device__ inline void crossEntropy(const T *logits, const int64_t *labels, float *loss, float *lse, uint64_t rows,
                                    uint64_t cols, int64_t ignore, Shard whole) {
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const T *z = logits + r * cols;
  SumExp all = teamSumExp(z, whole.count);
  if (threadIdx.x != 0)
    return;
  float logOfSum = all.max + logf(all.sum);
  int64_t at = whole.column(labels[r], ignore);
  lse[r] = logOfSum;
  loss[r] = at < 0 ? 0.0f : logOfSum - toFloat(z[at]);
}

template <typename T>
__device__ inline void crossEntropyShard(const T *logits, const int64_t *labels, const float *max, float *sumexp,
                                         float *picked, uint64_t rows, uint64_t cols, int64_t ignore, Shard shard) {
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const T *z = logits + r * cols;
  float top = max[r], sum = 0;
  uint64_t head = headOf<vectorOf<T>>(shard.count, z);
  forEach<vectorOf<T>>(shard.count, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> x = load<N>(z + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      sum += expOf<T>(x[k] - top);
  });
  sum = teamSum(sum);
  if (threadIdx.x != 0)
    return;
  int64_t at = shard.column(labels[r], ignore);
  sumexp[r] = sum;
  picked[r] = at < 0 ? 0.0f : toFloat(z[at]);
}

/// dlogits may be logits: every thread reads only the elements that it writes.
template <typename T>
__device__ inline void crossEntropyBackward(const T *logits, const int64_t *labels, const float *lse,
                                            const float *dloss, T *dlogits, uint64_t rows, uint64_t cols,
                                            int64_t ignore, Shard shard) {
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  int64_t at = shard.column(labels[r], ignore);
  bool ignored = labels[r] == ignore;
  float shift = lse[r], scale = dloss[r];
  const T *z = logits + r * cols;
  T *out = dlogits + r * cols;
  uint64_t head = headOf<vectorOf<T>>(cols, z, out);
  forEach<vectorOf<T>, 2>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> x = load<N>(z + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float value = expOf<T>(x[k] - shift) * scale;
      value = static_cast<int64_t>(i + k) == at ? value - scale : value;
      x[k] = ignored || i + k >= shard.count ? 0.0f : value;
    }
    store<N>(out + i, x);
  });
}

template <typename T>
__device__ inline void rowMax(const T *x, float *max, uint64_t rows, uint64_t cols) {
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const T *row = x + r * cols;
  float top = -INFINITY;
  forEach<vectorOf<T>>(cols, headOf<vectorOf<T>>(cols, row), threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> values = load<N>(row + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      top = larger(top, values[k]);
  });
  top = teamReduce(top, -INFINITY, [](float a, float b) { return larger(a, b); });
  if (threadIdx.x == 0)
    max[r] = top;
}

} // namespace
} // namespace par::cuda

#define PAR_CROSS_ENTROPY(TYPE, T)                                                                                     \
  PAR_ENTRY(512)                                                                                                       \
  par_cross_entropy##TYPE(const T *logits, const int64_t *labels, float *loss, float *lse, uint64_t rows,              \
                          uint64_t cols, uint64_t ignore) {                                                            \
    par::cuda::crossEntropy(logits, labels, loss, lse, rows, cols, int64_t(ignore), par::cuda::Shard(cols, 0, cols));  \
  }                                                                                                                    \
  PAR_ENTRY(512)                                                                                                       \
  par_cross_entropy_padded##TYPE(const T *logits, const int64_t *labels, float *loss, float *lse, uint64_t rows,       \
                                 uint64_t cols, uint64_t ignore, uint64_t total) {                                     \
    par::cuda::crossEntropy(logits, labels, loss, lse, rows, cols, int64_t(ignore), par::cuda::Shard(cols, 0, total)); \
  }                                                                                                                    \
  PAR_ENTRY(512)                                                                                                       \
  par_cross_entropy_shard##TYPE(const T *logits, const int64_t *labels, const float *max, float *sumexp,               \
                                float *picked, uint64_t rows, uint64_t cols, uint64_t ignore, uint64_t shard,          \
                                uint64_t total) {                                                                      \
    par::cuda::crossEntropyShard(logits, labels, max, sumexp, picked, rows, cols, int64_t(ignore),                     \
                                 par::cuda::Shard(cols, shard, total));                                                \
  }                                                                                                                    \
  PAR_ENTRY(512)                                                                                                       \
  par_cross_entropy_backward##TYPE(const T *logits, const int64_t *labels, const float *lse, const float *dloss,       \
                                   T *dlogits, uint64_t rows, uint64_t cols, uint64_t ignore, uint64_t shard,          \
                                   uint64_t total) {                                                                   \
    par::cuda::crossEntropyBackward(logits, labels, lse, dloss, dlogits, rows, cols, int64_t(ignore),                  \
                                    par::cuda::Shard(cols, shard, total));                                             \
  }                                                                                                                    \
  PAR_ENTRY(512)                                                                                                       \
  par_row_max##TYPE(const T *x, float *max, uint64_t rows, uint64_t cols) { par::cuda::rowMax(x, max, rows, cols); }

PAR_ROW_ENTRIES(PAR_CROSS_ENTROPY)
