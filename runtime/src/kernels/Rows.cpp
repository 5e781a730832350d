// gather_rows, scatter_add_rows, place_rows and sum_squares.
#include "Lanes.h"
#include "par/kernels/Builtins.h"

#include <algorithm>
#include <cstring>

namespace par::kernels {
namespace {

constexpr uint64_t movedRowsPerTile = 64, columnsPerTile = 256;

PAR_CLONES void addTo(float *__restrict to, const float *__restrict from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i)
    to[i] += from[i];
}

/// In double; lane i adds every 16th square from i, lanes are summed pairwise. Vectors are named, since the compiler
/// mixes those of floats and doubles up.
PAR_CLONES double squares(const float *x, uint64_t n) {
  using Singles = float __attribute__((vector_size(lanes * sizeof(float)), aligned(alignof(float)), may_alias));
  using Doubles = double __attribute__((vector_size(lanes * sizeof(double))));
  Doubles sums{};
  uint64_t whole = n - n % lanes;
  for (uint64_t i = 0; i < whole; i += lanes) {
    prefetchRead(x + i);
    Doubles each = __builtin_convertvector(*reinterpret_cast<const Singles *>(x + i), Doubles);
    sums += each * each;
  }
  for (uint64_t i = whole; i < n; ++i)
    sums[i - whole] += static_cast<double>(x[i]) * x[i];
  return laneSum<double>(lanes, [&](uint64_t i) { return sums[i]; });
}

} // namespace

void gatherRows(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto *table = static_cast<const float *>(ptr[0]);
  auto *index = static_cast<const int64_t *>(ptr[1]);
  auto *out = static_cast<float *>(ptr[2]);
  uint64_t n = imm[0], width = imm[1];
  auto rows = static_cast<int64_t>(imm[2]), first = static_cast<int64_t>(imm[3] * imm[2]);
  uint64_t end = std::min<uint64_t>(n, tile1 * movedRowsPerTile);
  for (uint64_t i = tile0 * movedRowsPerTile; i < end; ++i) {
    int64_t row = index[i] - first;
    if (row >= 0 && row < rows)
      std::memcpy(out + i * width, table + row * width, width * sizeof(float));
    else
      std::fill_n(out + i * width, width, 0.0f);
  }
}

/// Tiles are column ranges: each adds all values in their order, so the result does not depend on the thread that runs
/// it.
void scatterAddRows(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto *table = static_cast<float *>(ptr[0]);
  auto *index = static_cast<const int64_t *>(ptr[1]);
  auto *values = static_cast<const float *>(ptr[2]);
  uint64_t n = imm[0], width = imm[1];
  auto rows = static_cast<int64_t>(imm[2]), first = static_cast<int64_t>(imm[3] * imm[2]);
  uint64_t begin = std::min<uint64_t>(width, tile0 * columnsPerTile);
  uint64_t end = std::min<uint64_t>(width, tile1 * columnsPerTile);
  for (uint64_t i = 0; i < n; ++i) {
    int64_t row = index[i] - first;
    if (row >= 0 && row < rows)
      addTo(table + row * width + begin, values + i * width + begin, end - begin);
  }
}

void placeRows(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) {
  auto *kept = static_cast<float *>(ptr[0]);
  auto *rows = static_cast<const float *>(ptr[1]);
  auto *number = static_cast<const int64_t *>(ptr[2]);
  const uint64_t batch = imm[0], heads = imm[1], slots = imm[2], width = imm[3], count = imm[4];
  for (uint64_t b = 0; b < batch; ++b)
    for (uint64_t slot = 0; slot < slots; ++slot) {
      int64_t row = number[b * slots + slot];
      if (row < 0 || static_cast<uint64_t>(row) >= count)
        continue;
      for (uint64_t head = b * heads; head < (b + 1) * heads; ++head)
        std::memcpy(kept + (head * slots + slot) * width, rows + (head * count + static_cast<uint64_t>(row)) * width,
                    width * sizeof(float));
    }
}

void sumSquares(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) {
  auto *out = static_cast<float *>(ptr[1]);
  *out += static_cast<float>(immediateReal(imm[1]) * squares(static_cast<const float *>(ptr[0]), imm[0]));
}

} // namespace par::kernels
