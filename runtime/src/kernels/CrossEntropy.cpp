// Cross entropy per token, whole or by vocabulary shard, and its gradient.
#include "Lanes.h"
#include "par/kernels/Builtins.h"

#include <algorithm>
#include <cmath>

namespace par::kernels {
namespace {

constexpr uint64_t rowsPerTile = 16;

/// The rows of a tile range.
struct Rows {
  uint64_t begin, end;
  Rows(uint64_t rows, uint32_t tile0, uint32_t tile1)
      : begin(std::min<uint64_t>(rows, tile0 * rowsPerTile)), end(std::min<uint64_t>(rows, tile1 * rowsPerTile)) {}
};

/// The classes that one shard holds.
struct Shard {
  int64_t first;
  uint64_t count; ///< without padding

  Shard(uint64_t cols, uint64_t shard, uint64_t total) : first(static_cast<int64_t>(shard * cols)) {
    count = shard * cols >= total ? 0 : std::min(cols, total - shard * cols);
  }
  /// Column of a label, or -1 if it is not here or is the ignored one.
  int64_t column(int64_t label, int64_t ignore) const {
    int64_t at = label - first;
    return label == ignore || at < 0 || at >= static_cast<int64_t>(count) ? -1 : at;
  }
};

PAR_CLONES float rowLargest(const float *z, uint64_t n) { return laneMax(z, n); }

PAR_CLONES float sumOfExp(const float *z, uint64_t n, float shift) {
  return laneSum<float>(n, [=](uint64_t i) { return expf32(z[i] - shift); });
}

PAR_CLONES void softmaxTimes(const float *z, float *out, uint64_t n, float lse, float scale) {
  laneLoop(
      n, [=](uint64_t i) { out[i] = expf32(z[i] - lse) * scale; },
      [=](uint64_t i) {
        prefetchRead(z + i);
        prefetchWrite(out + i);
      });
}

} // namespace

/// Cross entropy over the first `total` classes of each row.
static void crossEntropyOf(uint64_t total, void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto *logits = static_cast<const float *>(ptr[0]);
  auto *labels = static_cast<const int64_t *>(ptr[1]);
  auto *loss = static_cast<float *>(ptr[2]), *lse = static_cast<float *>(ptr[3]);
  uint64_t cols = imm[1];
  Shard whole(cols, 0, total);
  Rows rows(imm[0], tile0, tile1);
  for (uint64_t r = rows.begin; r < rows.end; ++r) {
    const float *z = logits + r * cols;
    float largest = rowLargest(z, whole.count);
    lse[r] = largest + static_cast<float>(std::log(static_cast<double>(sumOfExp(z, whole.count, largest))));
    int64_t at = whole.column(labels[r], static_cast<int64_t>(imm[2]));
    loss[r] = at < 0 ? 0.0f : lse[r] - z[at];
  }
}

void crossEntropy(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  crossEntropyOf(imm[1], ptr, imm, tile0, tile1);
}

void crossEntropyPadded(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  crossEntropyOf(imm[3], ptr, imm, tile0, tile1);
}

void crossEntropyShard(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto *logits = static_cast<const float *>(ptr[0]);
  auto *labels = static_cast<const int64_t *>(ptr[1]);
  auto *largest = static_cast<const float *>(ptr[2]);
  auto *sums = static_cast<float *>(ptr[3]), *picked = static_cast<float *>(ptr[4]);
  uint64_t cols = imm[1];
  Shard shard(cols, imm[3], imm[4]);
  Rows rows(imm[0], tile0, tile1);
  for (uint64_t r = rows.begin; r < rows.end; ++r) {
    const float *z = logits + r * cols;
    sums[r] = sumOfExp(z, shard.count, largest[r]);
    int64_t at = shard.column(labels[r], static_cast<int64_t>(imm[2]));
    picked[r] = at < 0 ? 0.0f : z[at];
  }
}

void crossEntropyBackward(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto *logits = static_cast<const float *>(ptr[0]);
  auto *labels = static_cast<const int64_t *>(ptr[1]);
  auto *lse = static_cast<const float *>(ptr[2]), *dloss = static_cast<const float *>(ptr[3]);
  auto *dlogits = static_cast<float *>(ptr[4]);
  uint64_t cols = imm[1];
  auto ignore = static_cast<int64_t>(imm[2]);
  Shard shard(cols, imm[3], imm[4]);
  Rows rows(imm[0], tile0, tile1);
  for (uint64_t r = rows.begin; r < rows.end; ++r) {
    float *out = dlogits + r * cols;
    if (labels[r] == ignore) {
      std::fill_n(out, cols, 0.0f);
      continue;
    }
    softmaxTimes(logits + r * cols, out, shard.count, lse[r], dloss[r]);
    std::fill(out + shard.count, out + cols, 0.0f);
    int64_t at = shard.column(labels[r], ignore);
    if (at >= 0)
      out[at] -= dloss[r];
  }
}

void rowMax(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto *x = static_cast<const float *>(ptr[0]);
  auto *out = static_cast<float *>(ptr[1]);
  Rows rows(imm[0], tile0, tile1);
  for (uint64_t r = rows.begin; r < rows.end; ++r)
    out[r] = rowLargest(x + r * imm[1], imm[1]);
}

} // namespace par::kernels
