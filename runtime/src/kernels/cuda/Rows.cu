// gather_rows, scatter_add_rows and sum_squares.
#include "Kernel.cuh"

namespace par::cuda {
namespace {

// scatter_add_rows: a block has 32 rows of the table and a column for each of its 256 threads.
constexpr unsigned scatterThreads = scatterColumns, indicesOfThread = 8,
                   indicesOfTile = scatterThreads * indicesOfThread;
constexpr unsigned rowBits = 5;
static_assert(1u << rowBits == scatterRows && indicesOfTile << rowBits <= 1u << 16);

__device__ inline unsigned shuffleUp(unsigned x, unsigned by) { return __shfl_up_sync(wholeWarp, x, by); }

/// Sum of `value` over the threads before this one, and over all.
__device__ inline unsigned sumBefore(unsigned value, unsigned &total) {
  PAR_SHARED(unsigned, ofWarps, scatterThreads / warpLanes);
  unsigned lane = threadIdx.x % warpLanes, warp = threadIdx.x / warpLanes, upTo = value;
#pragma unroll
  for (unsigned by = 1; by < warpLanes; by *= 2) {
    unsigned before = shuffleUp(upTo, by);
    upTo += lane >= by ? before : 0;
  }
  if (lane == warpLanes - 1)
    ofWarps[warp] = upTo;
  __syncthreads();
  unsigned before = 0;
  total = 0;
#pragma unroll
  for (unsigned other = 0; other < scatterThreads / warpLanes; ++other) {
    before += other < warp ? unsigned(ofWarps[other]) : 0;
    total += ofWarps[other];
  }
  return before + upTo - value;
}

/// Sums over elements, exact enough that their order does not show in f32.
__device__ inline double sumSquares(const float *x, uint64_t n, uint64_t lane, uint64_t lanes) {
  double sum = 0;
  uint64_t head = headOf<4>(n, x);
  forEach<4>(n, head, static_cast<unsigned>(lane), static_cast<unsigned>(lanes), [&](auto width, uint64_t i) {
    constexpr int N = decltype(width)::value;
    Vector<float, N> values = load<N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      sum += static_cast<double>(values[k]) * values[k];
  });
  return teamSum(sum);
}

} // namespace
} // namespace par::cuda

PAR_ENTRY(512)
par_gather_rows(const float *table, const int64_t *index, float *out, uint64_t n, uint64_t width, uint64_t rows,
                uint64_t shard) {
  using namespace par::cuda;
  uint64_t i = teamRow();
  if (i >= n)
    return;
  int64_t row = index[i] - static_cast<int64_t>(shard * rows);
  bool here = row >= 0 && row < static_cast<int64_t>(rows);
  const float *from = table + (here ? row : 0) * width;
  float *to = out + i * width;
  forEach<4>(width, headOf<4>(width, from, to), threadIdx.x, blockDim.x, [&](auto vector, uint64_t at) {
    constexpr int N = decltype(vector)::value;
    storeRaw<N>(to + at, here ? loadRaw<N>(from + at) : Vector<float, N>{});
  });
}

/// Every block reads all indices, keeps those of its rows in their order, and adds their values in that
/// order: the same additions as on the CPU. Sums lie in shared memory, where each thread touches its own
/// column only.
PAR_ENTRY(256)
par_scatter_add_rows(float *table, const int64_t *index, const float *values, uint64_t n, uint64_t width, uint64_t rows,
                     uint64_t shard) {
  using namespace par::cuda;
  PAR_SHARED(float, sums, scatterRows *scatterThreads);
  PAR_SHARED(uint16_t, matches, indicesOfTile); // place in the tile, row of the block
  uint64_t column = uint64_t(blockIdx.y) * scatterThreads + threadIdx.x, firstRow = uint64_t(blockIdx.x) * scatterRows;
  auto held = static_cast<int64_t>(smaller<uint64_t>(scatterRows, rows - firstRow));
  auto first = static_cast<int64_t>(shard * rows + firstRow);
  bool isColumn = column < width;
  uint32_t touched = 0; // rows with values, a bit each; the same in all threads
  for (uint64_t begin = 0; begin < n; begin += indicesOfTile) {
    unsigned found = 0, count, place = threadIdx.x * indicesOfThread;
    int64_t row[indicesOfThread];
#pragma unroll
    for (unsigned k = 0; k < indicesOfThread; ++k) {
      row[k] = begin + place + k < n ? index[begin + place + k] - first : -1;
      found += row[k] >= 0 && row[k] < held;
    }
    unsigned at = sumBefore(found, count);
#pragma unroll
    for (unsigned k = 0; k < indicesOfThread; ++k)
      if (row[k] >= 0 && row[k] < held)
        matches[at++] = static_cast<uint16_t>((place + k) << rowBits | static_cast<unsigned>(row[k]));
    __syncthreads();
    constexpr unsigned ahead = 8; // values asked for at a time
    for (unsigned match = 0; match < count; match += ahead) {
      float value[ahead];
      unsigned code[ahead];
#pragma unroll
      for (unsigned k = 0; k < ahead; ++k) {
        code[k] = match + k < count ? unsigned(matches[match + k]) : 0;
        value[k] = isColumn && match + k < count ? values[(begin + (code[k] >> rowBits)) * width + column] : 0.0f;
      }
#pragma unroll
      for (unsigned k = 0; k < ahead; ++k) {
        unsigned to = code[k] % scatterRows;
        if (match + k >= count || !isColumn)
          continue;
        float sum = touched >> to & 1 ? float(sums[to * scatterThreads + threadIdx.x])
                                      : table[(firstRow + to) * width + column];
        sums[to * scatterThreads + threadIdx.x] = sum + value[k];
        touched |= 1u << to;
      }
    }
    __syncthreads(); // the matches have been read
  }
  for (unsigned to = 0; to < scatterRows; ++to)
    if (touched >> to & 1)
      table[(firstRow + to) * width + column] = sums[to * scatterThreads + threadIdx.x];
}

/// One block for all.
PAR_ENTRY(par::cuda::squaresThreads)
par_sum_squares(const float *x, float *out, uint64_t n, uint64_t weight) {
  using namespace par::cuda;
  double sum = sumSquares(x, n, threadIdx.x, blockDim.x);
  if (threadIdx.x == 0)
    *out += static_cast<float>(real(weight) * sum);
}

/// First stage: a sum for every block.
PAR_ENTRY(par::cuda::squaresThreads)
par_sum_squares_parts(const float *x, float *, double *scratch, uint64_t n, uint64_t) {
  using namespace par::cuda;
  double sum = sumSquares(x, n, uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, uint64_t(gridDim.x) * blockDim.x);
  if (threadIdx.x == 0)
    scratch[blockIdx.x] = sum;
}

/// Second stage: a block with a thread for every block of the first.
PAR_ENTRY(par::cuda::squaresThreads)
par_sum_squares_total(const float *, float *out, const double *scratch, uint64_t n, uint64_t weight) {
  using namespace par::cuda;
  double sum = teamSum(threadIdx.x < squaresParts(n) ? scratch[threadIdx.x] : 0.0);
  if (threadIdx.x == 0)
    *out += static_cast<float>(real(weight) * sum);
}
