// Softmax and layer norm over rows, with their gradients.
#include "Lanes.h"
#include "par/kernels/Builtins.h"

#include <algorithm>
#include <cmath>

namespace par::kernels {
namespace {

constexpr uint64_t normRowsPerTile = 16;

PAR_CLONES void softmaxRow(const float *x, float *y, uint64_t n) {
  float largest = laneMax(x, n);
  PAR_INDEPENDENT
  for (uint64_t i = 0; i < n; ++i)
    y[i] = expf32(x[i] - largest);
  float scale = 1.0f / laneSum<float>(n, [=](uint64_t i) { return y[i]; });
  PAR_INDEPENDENT
  for (uint64_t i = 0; i < n; ++i)
    y[i] *= scale;
}

PAR_CLONES void softmaxBackwardRow(const float *y, const float *dy, float *dx, uint64_t n) {
  float dot = laneSum<float>(n, [=](uint64_t i) { return y[i] * dy[i]; });
  PAR_INDEPENDENT
  for (uint64_t i = 0; i < n; ++i)
    dx[i] = y[i] * (dy[i] - dot);
}

PAR_CLONES void layerNormRow(const float *x, const float *gamma, const float *beta, float *y, uint64_t n, float eps,
                             float &meanOut, float &rstdOut) {
  float mean = laneSum<float>(n, [=](uint64_t i) { return x[i]; }) / static_cast<float>(n);
  float var = laneSum<float>(n, [=](uint64_t i) { return (x[i] - mean) * (x[i] - mean); }) / static_cast<float>(n);
  float rstd = 1.0f / __builtin_sqrtf(var + eps);
  PAR_INDEPENDENT
  for (uint64_t i = 0; i < n; ++i)
    y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
  meanOut = mean;
  rstdOut = rstd;
}

PAR_CLONES void layerNormBackwardRow(const float *x, const float *gamma, const float *dy, float *dx,
                                     float *__restrict dgamma, float *__restrict dbeta, uint64_t n, float mean,
                                     float rstd) {
  float sum = laneSum<float>(n, [=](uint64_t i) { return dy[i] * gamma[i]; });
  float dot = laneSum<float>(n, [=](uint64_t i) { return dy[i] * gamma[i] * ((x[i] - mean) * rstd); });
  sum /= static_cast<float>(n);
  dot /= static_cast<float>(n);
  PAR_INDEPENDENT
  for (uint64_t i = 0; i < n; ++i) {
    float normal = (x[i] - mean) * rstd, d = dy[i];
    dgamma[i] += d * normal;
    dbeta[i] += d;
    dx[i] = (d * gamma[i] - sum - normal * dot) * rstd;
  }
}

} // namespace

void softmax(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  uint64_t cols = imm[1], end = std::min<uint64_t>(imm[0], tile1 * normRowsPerTile);
  for (uint64_t r = tile0 * normRowsPerTile; r < end; ++r)
    softmaxRow(static_cast<const float *>(ptr[0]) + r * cols, static_cast<float *>(ptr[1]) + r * cols, cols);
}

void softmaxBackward(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  uint64_t cols = imm[1], end = std::min<uint64_t>(imm[0], tile1 * normRowsPerTile);
  for (uint64_t r = tile0 * normRowsPerTile; r < end; ++r)
    softmaxBackwardRow(static_cast<const float *>(ptr[0]) + r * cols, static_cast<const float *>(ptr[1]) + r * cols,
                       static_cast<float *>(ptr[2]) + r * cols, cols);
}

void layerNorm(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  uint64_t cols = imm[1], end = std::min<uint64_t>(imm[0], tile1 * normRowsPerTile);
  auto eps = static_cast<float>(immediateReal(imm[2]));
  for (uint64_t r = tile0 * normRowsPerTile; r < end; ++r)
    layerNormRow(static_cast<const float *>(ptr[0]) + r * cols, static_cast<const float *>(ptr[1]),
                 static_cast<const float *>(ptr[2]), static_cast<float *>(ptr[3]) + r * cols, cols, eps,
                 static_cast<float *>(ptr[4])[r], static_cast<float *>(ptr[5])[r]);
}

/// One tile: dgamma and dbeta are sums over all rows, in their order.
void layerNormBackward(void *const *ptr, const uint64_t *imm, uint32_t, uint32_t) {
  uint64_t cols = imm[1];
  for (uint64_t r = 0; r < imm[0]; ++r)
    layerNormBackwardRow(static_cast<const float *>(ptr[0]) + r * cols, static_cast<const float *>(ptr[1]),
                         static_cast<const float *>(ptr[4]) + r * cols, static_cast<float *>(ptr[5]) + r * cols,
                         static_cast<float *>(ptr[6]), static_cast<float *>(ptr[7]), cols,
                         static_cast<const float *>(ptr[2])[r], static_cast<const float *>(ptr[3])[r]);
}

} // namespace par::kernels
