// adamw, sgd and momentum: PyTorch's formulas, one pass over memory. Scalars are computed in double and rounded
// once, as PyTorch does with Python floats.
#include "Lanes.h"
#include "par/kernels/Builtins.h"

#include <algorithm>
#include <cmath>

namespace par::kernels {
namespace {

constexpr uint64_t tileSize = 16384;

struct Range {
  uint64_t begin, end;
};

Range elements(uint64_t n, uint32_t tile0, uint32_t tile1) {
  return {std::min<uint64_t>(n, tile0 * tileSize), std::min<uint64_t>(n, tile1 * tileSize)};
}

struct AdamwScalars {
  float decay, beta1, oneMinusBeta1, beta2, oneMinusBeta2, stepSize, rootOfCorrection2, eps, coef;
};

PAR_CLONES void adamwLoop(float *__restrict w, const float *__restrict g, float *__restrict m, float *__restrict v,
                          uint64_t begin, uint64_t end, const AdamwScalars &s) {
  const AdamwScalars k = s;
  for (uint64_t i = begin; i < end; ++i) {
    float gi = g[i] * k.coef;
    float wi = w[i] * k.decay;
    float mi = m[i] + (gi - m[i]) * k.oneMinusBeta1;
    float vi = v[i] * k.beta2 + gi * gi * k.oneMinusBeta2;
    m[i] = mi;
    v[i] = vi;
    w[i] = wi - k.stepSize * (mi / (__builtin_sqrtf(vi) / k.rootOfCorrection2 + k.eps));
  }
}

PAR_CLONES void sgdLoop(float *__restrict w, const float *__restrict g, uint64_t begin, uint64_t end, float lr,
                        float weightDecay, float coef) {
  for (uint64_t i = begin; i < end; ++i)
    w[i] -= lr * (g[i] * coef + weightDecay * w[i]);
}

PAR_CLONES void momentumLoop(float *__restrict w, const float *__restrict g, float *__restrict buf, uint64_t begin,
                             uint64_t end, float lr, float momentum, float weightDecay, float coef, bool nesterov) {
  float ownShare = nesterov ? 1.0f : 0.0f, bufShare = nesterov ? momentum : 1.0f;
  for (uint64_t i = begin; i < end; ++i) {
    float d = g[i] * coef + weightDecay * w[i];
    float b = momentum * buf[i] + d;
    buf[i] = b;
    w[i] -= lr * (ownShare * d + bufShare * b);
  }
}

/// The clip coefficient, 1 where there is none.
float coefficient(void *const *ptr, int operand, uint64_t present) {
  return present ? *static_cast<const float *>(ptr[operand]) : 1.0f;
}

} // namespace

void adamw(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto [begin, end] = elements(imm[0], tile0, tile1);
  double beta1 = immediateReal(imm[1]), beta2 = immediateReal(imm[2]);
  double step = *static_cast<const float *>(ptr[4]);
  double lr = *static_cast<const float *>(ptr[5]) * immediateReal(imm[5]);
  double correction1 = 1.0 - std::pow(beta1, step), correction2 = 1.0 - std::pow(beta2, step);
  AdamwScalars s;
  s.decay = static_cast<float>(1.0 - lr * immediateReal(imm[4]));
  s.beta1 = static_cast<float>(beta1);
  s.oneMinusBeta1 = static_cast<float>(1.0 - beta1);
  s.beta2 = static_cast<float>(beta2);
  s.oneMinusBeta2 = static_cast<float>(1.0 - beta2);
  s.stepSize = static_cast<float>(lr / correction1);
  s.rootOfCorrection2 = static_cast<float>(std::sqrt(correction2));
  s.eps = static_cast<float>(immediateReal(imm[3]));
  s.coef = coefficient(ptr, 6, imm[6]);
  adamwLoop(static_cast<float *>(ptr[0]), static_cast<const float *>(ptr[1]), static_cast<float *>(ptr[2]),
            static_cast<float *>(ptr[3]), begin, end, s);
}

void sgd(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto [begin, end] = elements(imm[0], tile0, tile1);
  double lr = *static_cast<const float *>(ptr[2]) * immediateReal(imm[2]);
  sgdLoop(static_cast<float *>(ptr[0]), static_cast<const float *>(ptr[1]), begin, end, static_cast<float>(lr),
          static_cast<float>(immediateReal(imm[1])), coefficient(ptr, 3, imm[3]));
}

void momentum(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto [begin, end] = elements(imm[0], tile0, tile1);
  double lr = *static_cast<const float *>(ptr[3]) * immediateReal(imm[4]);
  momentumLoop(static_cast<float *>(ptr[0]), static_cast<const float *>(ptr[1]), static_cast<float *>(ptr[2]), begin,
               end, static_cast<float>(lr), static_cast<float>(immediateReal(imm[1])),
               static_cast<float>(immediateReal(imm[2])), coefficient(ptr, 4, imm[5]), imm[3] != 0);
}

} // namespace par::kernels
