// Cross entropy per token, whole or by vocabulary shard, its gradient, and the largest of a row.
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

} // namespace
} // namespace par::cuda

PAR_ENTRY(512)
par_cross_entropy(const float *logits, const int64_t *labels, float *loss, float *lse, uint64_t rows, uint64_t cols,
                  uint64_t ignore) {
  using namespace par::cuda;
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const float *z = logits + r * cols;
  SumExp all = teamSumExp(z, cols);
  if (threadIdx.x != 0)
    return;
  float logOfSum = all.max + logf(all.sum);
  int64_t at = Shard(cols, 0, cols).column(labels[r], static_cast<int64_t>(ignore));
  lse[r] = logOfSum;
  loss[r] = at < 0 ? 0.0f : logOfSum - z[at];
}

PAR_ENTRY(512)
par_cross_entropy_shard(const float *logits, const int64_t *labels, const float *max, float *sumexp, float *picked,
                        uint64_t rows, uint64_t cols, uint64_t ignore, uint64_t shardIndex, uint64_t total) {
  using namespace par::cuda;
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  Shard shard(cols, shardIndex, total);
  const float *z = logits + r * cols;
  float top = max[r], sum = 0;
  forEach<4>(shard.count, headOf<4>(shard.count, z), threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> x = load<N>(z + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      sum += expf(x[k] - top);
  });
  sum = teamSum(sum);
  if (threadIdx.x != 0)
    return;
  int64_t at = shard.column(labels[r], static_cast<int64_t>(ignore));
  sumexp[r] = sum;
  picked[r] = at < 0 ? 0.0f : z[at];
}

/// dlogits may be logits: every thread reads what it writes, and nothing else.
PAR_ENTRY(512)
par_cross_entropy_backward(const float *logits, const int64_t *labels, const float *lse, const float *dloss,
                           float *dlogits, uint64_t rows, uint64_t cols, uint64_t ignore, uint64_t shardIndex,
                           uint64_t total) {
  using namespace par::cuda;
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  Shard shard(cols, shardIndex, total);
  int64_t label = labels[r], at = shard.column(label, static_cast<int64_t>(ignore));
  bool ignored = label == static_cast<int64_t>(ignore);
  float shift = lse[r], scale = dloss[r];
  const float *z = logits + r * cols;
  float *out = dlogits + r * cols;
  forEach<4>(cols, headOf<4>(cols, z, out), threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> x = load<N>(z + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float value = expf(x[k] - shift) * scale;
      value = static_cast<int64_t>(i + k) == at ? value - scale : value;
      x[k] = ignored || i + k >= shard.count ? 0.0f : value;
    }
    store<N>(out + i, x);
  });
}

PAR_ENTRY(512)
par_row_max(const float *x, float *max, uint64_t rows, uint64_t cols) {
  using namespace par::cuda;
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const float *row = x + r * cols;
  float top = -INFINITY;
  forEach<4>(cols, headOf<4>(cols, row), threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
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
