// Layer norm of rows, f32, bf16 or f16, and its gradient; all else is f32.
#include "Kernel.cuh"

namespace par::cuda {
namespace {

/// 0 if rows of `cols` elements of all these arrays can be read N elements at a time, else cols.
template <int N, typename... Arrays>
__device__ inline uint64_t rowHead(uint64_t cols, const Arrays *...arrays) {
  return cols % N == 0 && headOf<N>(cols, arrays...) == 0 ? 0 : cols;
}

/// The sums that row r's dx needs: of dy gamma, and of dy gamma times the normalised x; both over cols.
struct RowSums {
  float sum, dot;
};

template <typename T>
__device__ inline void layerNorm(const T *x, const float *gamma, const float *beta, T *y, float *mean, float *rstd,
                                 uint64_t rows, uint64_t cols, uint64_t eps) {
  uint64_t r = teamRow();
  if (r >= rows)
    return;
  const T *from = x + r * cols;
  T *to = y + r * cols;
  uint64_t head = rowHead<vectorOf<T>>(cols, x, gamma, beta, y);
  float sum = 0, squares = 0;
  forEach<vectorOf<T>>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> values = load<N>(from + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      sum += values[k];
  });
  float m = teamSum(sum) / static_cast<float>(cols);
  forEach<vectorOf<T>>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> values = load<N>(from + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      squares += (values[k] - m) * (values[k] - m);
  });
  float variance = teamSum(squares) / static_cast<float>(cols);
  float s = 1.0f / sqrtf(variance + static_cast<float>(real(eps)));
  forEach<vectorOf<T>>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> values = load<N>(from + i), g = load<N>(gamma + i), b = load<N>(beta + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      values[k] = (values[k] - m) * s * g[k] + b[k];
    store<N>(to + i, values);
  });
  if (threadIdx.x == 0) {
    mean[r] = m;
    rstd[r] = s;
  }
}

/// First stage: dx, and the block's part of dgamma and dbeta in its 2 x cols of `scratch`. A block takes
/// every gridDim.x-th tile of 8 rows. First a warp finds the sums of each row, then the threads, each with
/// columns of its own, walk the tile's rows, which the caches still hold.
template <typename T>
__device__ inline void layerNormBackward(const T *x, const float *gamma, const float *mean, const float *rstd,
                                         const T *dy, T *dx, float *scratch, uint64_t rows, uint64_t cols) {
  constexpr int W = 4; // more would not fit the registers
  PAR_DYNAMIC_SHARED(float, inShared);
  PAR_SHARED(RowSums, ofRows, layerNormTile);
  float *mine = scratch + blockIdx.x * 2 * cols;
  float *dgamma = cols <= layerNormColumnsInShared ? inShared : mine, *dbeta = dgamma + cols;
  uint64_t head = rowHead<W>(cols, x, gamma, dy, dx, scratch);
  unsigned lane = threadIdx.x % warpLanes, warp = threadIdx.x / warpLanes;
  bool first = true;
  for (uint64_t begin = uint64_t(blockIdx.x) * layerNormTile; begin < rows;
       begin += uint64_t(gridDim.x) * layerNormTile) {
    if (begin + warp < rows) {
      uint64_t r = begin + warp;
      float m = mean[r], s = rstd[r], sum = 0, dot = 0;
      forEach<W>(cols, head, lane, warpLanes, [&](auto width, uint64_t i) {
        constexpr int N = decltype(width)::value;
        Vector<float, N> xi = load<N>(x + r * cols + i), di = load<N>(dy + r * cols + i), gi = load<N>(gamma + i);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          float d = di[k] * gi[k];
          sum += d;
          dot += d * ((xi[k] - m) * s);
        }
      });
      auto add = [](float a, float b) { return a + b; };
      sum = warpReduce(sum, add);
      dot = warpReduce(dot, add);
      if (lane == 0)
        ofRows[warp] = RowSums{sum / static_cast<float>(cols), dot / static_cast<float>(cols)};
    }
    __syncthreads();
    auto count = static_cast<unsigned>(smaller<uint64_t>(layerNormTile, rows - begin));
    forEach<W, 1>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) {
      constexpr int N = decltype(width)::value;
      Vector<float, N> gi = load<N>(gamma + i), byGamma{}, byBeta{};
      if (!first) {
        byGamma = load<N>(dgamma + i);
        byBeta = load<N>(dbeta + i);
      }
#pragma unroll 2
      for (unsigned j = 0; j < count; ++j) {
        uint64_t r = begin + j;
        float m = mean[r], s = rstd[r];
        RowSums row = ofRows[j];
        Vector<float, N> xi = load<N>(x + r * cols + i), di = load<N>(dy + r * cols + i), out;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          float normal = (xi[k] - m) * s;
          byGamma[k] += di[k] * normal;
          byBeta[k] += di[k];
          out[k] = (di[k] * gi[k] - row.sum - normal * row.dot) * s;
        }
        store<N>(dx + r * cols + i, out);
      }
      *reinterpret_cast<Vector<float, N> *>(dgamma + i) = byGamma; // shared memory, mostly
      *reinterpret_cast<Vector<float, N> *>(dbeta + i) = byBeta;
    });
    first = false;
    __syncthreads(); // the row sums have been read
  }
  if (cols > layerNormColumnsInShared)
    return;
  forEach<W, 1>(cols, head, threadIdx.x, blockDim.x, [&](auto width, uint64_t i) { // each thread what it wrote itself
    constexpr int N = decltype(width)::value;
    storeRaw<N>(mine + i, loadRaw<N>(dgamma + i));
    storeRaw<N>(mine + cols + i, loadRaw<N>(dbeta + i));
  });
}

} // namespace
} // namespace par::cuda

#define PAR_LAYER_NORM(TYPE, T)                                                                                        \
  PAR_ENTRY(512)                                                                                                       \
  par_layer_norm##TYPE(const T *x, const float *gamma, const float *beta, T *y, float *mean, float *rstd,              \
                       uint64_t rows, uint64_t cols, uint64_t eps) {                                                   \
    par::cuda::layerNorm(x, gamma, beta, y, mean, rstd, rows, cols, eps);                                              \
  }                                                                                                                    \
  PAR_ENTRY(256)                                                                                                       \
  par_layer_norm_backward##TYPE(const T *x, const float *gamma, const float *mean, const float *rstd, const T *dy,     \
                                T *dx, float *, float *, float *scratch, uint64_t rows, uint64_t cols) {               \
    par::cuda::layerNormBackward(x, gamma, mean, rstd, dy, dx, scratch, rows, cols);                                   \
  }

PAR_ROW_ENTRIES(PAR_LAYER_NORM)

/// Second stage: adds the blocks' parts up, 32 columns and 32 groups of parts to a block; y of the grid says
/// which sum.
PAR_ENTRY(1024)
par_layer_norm_backward_sums(const void *, const float *, const float *, const float *, const void *, void *,
                             float *dgamma, float *dbeta, const float *scratch, uint64_t rows, uint64_t cols) {
  using namespace par::cuda;
  PAR_SHARED(float, ofGroups, 32 * 32);
  uint64_t column = uint64_t(blockIdx.x) * 32 + threadIdx.x;
  unsigned parts = layerNormParts(rows);
  float sum = 0;
  if (column < cols)
    for (unsigned part = threadIdx.y; part < parts; part += 32)
      sum += scratch[(2 * uint64_t(part) + blockIdx.y) * cols + column];
  ofGroups[threadIdx.y * 32 + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= cols)
    return;
  for (unsigned group = 1; group < 32; ++group)
    sum += ofGroups[group * 32 + threadIdx.x];
  float *out = blockIdx.y == 0 ? dgamma : dbeta;
  out[column] += sum;
}
