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
  w += begin;
  g += begin;
  laneLoop(
      end - begin, [=](uint64_t i) { w[i] -= lr * (g[i] * coef + weightDecay * w[i]); },
      [=](uint64_t i) {
        prefetchRead(g + i);
        prefetchWrite(w + i);
      });
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

/// The scalars of adamw, of the immediates from `beta1` on.
AdamwScalars adamwScalars(const void *step, const void *rate, const uint64_t *imm, float coef) {
  double beta1 = immediateReal(imm[0]), beta2 = immediateReal(imm[1]);
  double count = *static_cast<const float *>(step);
  double lr = *static_cast<const float *>(rate) * immediateReal(imm[4]);
  double correction1 = 1.0 - std::pow(beta1, count), correction2 = 1.0 - std::pow(beta2, count);
  AdamwScalars s;
  s.decay = static_cast<float>(1.0 - lr * immediateReal(imm[3]));
  s.beta1 = static_cast<float>(beta1);
  s.oneMinusBeta1 = static_cast<float>(1.0 - beta1);
  s.beta2 = static_cast<float>(beta2);
  s.oneMinusBeta2 = static_cast<float>(1.0 - beta2);
  s.stepSize = static_cast<float>(lr / correction1);
  s.rootOfCorrection2 = static_cast<float>(std::sqrt(correction2));
  s.eps = static_cast<float>(immediateReal(imm[2]));
  s.coef = coef;
  return s;
}

constexpr uint64_t rowsOfTile = 64;

/// Calls update(elements before the row in the table, and in the gradient) for each row of these tiles that is in the
/// table.
template <typename Update>
void eachRow(const void *index, const uint64_t *imm, uint32_t tile0, uint32_t tile1, Update update) {
  auto *named = static_cast<const int64_t *>(index);
  uint64_t n = imm[0], width = imm[1], rows = imm[2], end = std::min<uint64_t>(n, tile1 * rowsOfTile);
  for (uint64_t i = tile0 * rowsOfTile; i < end; ++i)
    if (named[i] >= 0 && static_cast<uint64_t>(named[i]) < rows)
      update(static_cast<uint64_t>(named[i]) * width, i * width);
}

} // namespace

void adamw(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto [begin, end] = elements(imm[0], tile0, tile1);
  AdamwScalars s = adamwScalars(ptr[4], ptr[5], imm + 1, coefficient(ptr, 6, imm[6]));
  adamwLoop(static_cast<float *>(ptr[0]), static_cast<const float *>(ptr[1]), static_cast<float *>(ptr[2]),
            static_cast<float *>(ptr[3]), begin, end, s);
}

void adamwRows(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  AdamwScalars s = adamwScalars(ptr[4], ptr[5], imm + 3, coefficient(ptr, 7, imm[8]));
  auto *w = static_cast<float *>(ptr[0]), *m = static_cast<float *>(ptr[2]), *v = static_cast<float *>(ptr[3]);
  auto *g = static_cast<const float *>(ptr[1]);
  eachRow(ptr[6], imm, tile0, tile1,
          [&](uint64_t at, uint64_t of) { adamwLoop(w + at, g + of, m + at, v + at, 0, imm[1], s); });
}

void sgd(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto [begin, end] = elements(imm[0], tile0, tile1);
  double lr = *static_cast<const float *>(ptr[2]) * immediateReal(imm[2]);
  sgdLoop(static_cast<float *>(ptr[0]), static_cast<const float *>(ptr[1]), begin, end, static_cast<float>(lr),
          static_cast<float>(immediateReal(imm[1])), coefficient(ptr, 3, imm[3]));
}

void sgdRows(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto lr = static_cast<float>(*static_cast<const float *>(ptr[2]) * immediateReal(imm[4]));
  auto decay = static_cast<float>(immediateReal(imm[3]));
  float coef = coefficient(ptr, 4, imm[5]);
  auto *w = static_cast<float *>(ptr[0]);
  auto *g = static_cast<const float *>(ptr[1]);
  eachRow(ptr[3], imm, tile0, tile1,
          [&](uint64_t at, uint64_t of) { sgdLoop(w + at, g + of, 0, imm[1], lr, decay, coef); });
}

void momentum(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto [begin, end] = elements(imm[0], tile0, tile1);
  double lr = *static_cast<const float *>(ptr[3]) * immediateReal(imm[4]);
  momentumLoop(static_cast<float *>(ptr[0]), static_cast<const float *>(ptr[1]), static_cast<float *>(ptr[2]), begin,
               end, static_cast<float>(lr), static_cast<float>(immediateReal(imm[1])),
               static_cast<float>(immediateReal(imm[2])), coefficient(ptr, 4, imm[5]), imm[3] != 0);
}

void momentumRows(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  auto lr = static_cast<float>(*static_cast<const float *>(ptr[3]) * immediateReal(imm[6]));
  auto mu = static_cast<float>(immediateReal(imm[3])), decay = static_cast<float>(immediateReal(imm[4]));
  float coef = coefficient(ptr, 5, imm[7]);
  auto *w = static_cast<float *>(ptr[0]), *buf = static_cast<float *>(ptr[2]);
  auto *g = static_cast<const float *>(ptr[1]);
  eachRow(ptr[4], imm, tile0, tile1, [&](uint64_t at, uint64_t of) {
    momentumLoop(w + at, g + of, buf + at, 0, imm[1], lr, mu, decay, coef, imm[5] != 0);
  });
}

} // namespace par::kernels
