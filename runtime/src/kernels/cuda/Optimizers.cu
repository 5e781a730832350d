// adamw, sgd and momentum: PyTorch's formulas, one pass over memory. As on the CPU, scalars are computed in
// double and rounded once; one thread of a block does so for all.
#include "Kernel.cuh"

namespace par::cuda {
namespace {

/// The elements of this block: calls body(width, i) with i from the beginning of the whole.
template <typename T, typename Body, typename... Others>
__device__ inline void forChunk(uint64_t n, Body body, const T *first, const Others *...others) {
  uint64_t begin = uint64_t(blockIdx.x) * elementsOfBlock;
  if (begin >= n)
    return;
  uint64_t size = smaller<uint64_t>(n - begin, elementsOfBlock);
  forEach<4, 1>(size, headOf<4>(size, first + begin, others + begin...), threadIdx.x, blockDim.x,
                [&](auto width, uint64_t i) { body(width, begin + i); });
}

/// The clip coefficient, 1 where there is none.
__device__ inline float coefficient(const float *coef) { return coef ? *coef : 1.0f; }

/// base^count, by squaring.
__device__ inline double power(double base, uint32_t count) {
  double result = 1;
  for (; count > 0; count >>= 1, base *= base)
    if (count & 1)
      result *= base;
  return result;
}

struct AdamwScalars {
  float decay, oneMinusBeta1, beta2, oneMinusBeta2, stepSize, rootOfCorrection2, eps, coef;
};

__device__ inline AdamwScalars adamwScalars(const float *step, const float *lr, const float *coef,
                                            uint64_t beta1, uint64_t beta2, uint64_t eps,
                                            uint64_t weightDecay, uint64_t lrScale) {
  auto count = static_cast<uint32_t>(*step);
  double rate = *lr * real(lrScale);
  AdamwScalars s;
  s.decay = static_cast<float>(1.0 - rate * real(weightDecay));
  s.oneMinusBeta1 = static_cast<float>(1.0 - real(beta1));
  s.beta2 = static_cast<float>(real(beta2));
  s.oneMinusBeta2 = static_cast<float>(1.0 - real(beta2));
  s.stepSize = static_cast<float>(rate / (1.0 - power(real(beta1), count)));
  s.rootOfCorrection2 = static_cast<float>(sqrt(1.0 - power(real(beta2), count)));
  s.eps = static_cast<float>(real(eps));
  s.coef = coefficient(coef);
  return s;
}

__device__ inline void adamw(float *__restrict__ w, const float *__restrict__ g, float *__restrict__ m,
                             float *__restrict__ v, const float *step, const float *lr, const float *coef,
                             uint64_t n, uint64_t beta1, uint64_t beta2, uint64_t eps, uint64_t weightDecay,
                             uint64_t lrScale) {
  PAR_SHARED(AdamwScalars, ofBlock, 1);
  if (threadIdx.x == 0)
    ofBlock[0] = adamwScalars(step, lr, coef, beta1, beta2, eps, weightDecay, lrScale);
  __syncthreads();
  const AdamwScalars s = ofBlock[0];
  forChunk(
      n,
      [&](auto width, uint64_t i) {
        constexpr int N = decltype(width)::value;
        Vector<float, N> wi = load<N>(w + i), gi = load<N>(g + i), mi = load<N>(m + i), vi = load<N>(v + i);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          float d = gi[k] * s.coef;
          mi[k] += (d - mi[k]) * s.oneMinusBeta1;
          vi[k] = vi[k] * s.beta2 + d * d * s.oneMinusBeta2;
          wi[k] = wi[k] * s.decay - s.stepSize * (mi[k] / (sqrtf(vi[k]) / s.rootOfCorrection2 + s.eps));
        }
        store<N>(w + i, wi);
        store<N>(m + i, mi);
        store<N>(v + i, vi);
      },
      w, g, m, v);
}

__device__ inline void sgd(float *__restrict__ w, const float *__restrict__ g, const float *lr,
                           const float *coef, uint64_t n, uint64_t weightDecay, uint64_t lrScale) {
  auto rate = static_cast<float>(*lr * real(lrScale)), decay = static_cast<float>(real(weightDecay));
  float scale = coefficient(coef);
  forChunk(
      n,
      [&](auto width, uint64_t i) {
        constexpr int N = decltype(width)::value;
        Vector<float, N> wi = load<N>(w + i), gi = load<N>(g + i);
#pragma unroll
        for (int k = 0; k < N; ++k)
          wi[k] -= rate * (gi[k] * scale + decay * wi[k]);
        store<N>(w + i, wi);
      },
      w, g);
}

__device__ inline void momentum(float *__restrict__ w, const float *__restrict__ g, float *__restrict__ buf,
                                const float *lr, const float *coef, uint64_t n, uint64_t momentum,
                                uint64_t weightDecay, uint64_t nesterov, uint64_t lrScale) {
  auto rate = static_cast<float>(*lr * real(lrScale)), decay = static_cast<float>(real(weightDecay));
  auto mu = static_cast<float>(real(momentum));
  float scale = coefficient(coef), ownShare = nesterov ? 1.0f : 0.0f, bufShare = nesterov ? mu : 1.0f;
  forChunk(
      n,
      [&](auto width, uint64_t i) {
        constexpr int N = decltype(width)::value;
        Vector<float, N> wi = load<N>(w + i), gi = load<N>(g + i), bi = load<N>(buf + i);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          float d = gi[k] * scale + decay * wi[k];
          bi[k] = mu * bi[k] + d;
          wi[k] -= rate * (ownShare * d + bufShare * bi[k]);
        }
        store<N>(w + i, wi);
        store<N>(buf + i, bi);
      },
      w, g, buf);
}

} // namespace
} // namespace par::cuda

// Each twice: without and with the clip coefficient, which is an operand of its own.

PAR_ENTRY(256)
par_adamw(float *w, const float *g, float *m, float *v, const float *step, const float *lr, uint64_t n,
          uint64_t beta1, uint64_t beta2, uint64_t eps, uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::adamw(w, g, m, v, step, lr, nullptr, n, beta1, beta2, eps, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_adamw_coef(float *w, const float *g, float *m, float *v, const float *step, const float *lr,
               const float *coef, uint64_t n, uint64_t beta1, uint64_t beta2, uint64_t eps,
               uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::adamw(w, g, m, v, step, lr, coef, n, beta1, beta2, eps, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_sgd(float *w, const float *g, const float *lr, uint64_t n, uint64_t weightDecay, uint64_t lrScale,
        uint64_t) {
  par::cuda::sgd(w, g, lr, nullptr, n, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_sgd_coef(float *w, const float *g, const float *lr, const float *coef, uint64_t n, uint64_t weightDecay,
             uint64_t lrScale, uint64_t) {
  par::cuda::sgd(w, g, lr, coef, n, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_momentum(float *w, const float *g, float *buf, const float *lr, uint64_t n, uint64_t mu,
             uint64_t weightDecay, uint64_t nesterov, uint64_t lrScale, uint64_t) {
  par::cuda::momentum(w, g, buf, lr, nullptr, n, mu, weightDecay, nesterov, lrScale);
}

PAR_ENTRY(256)
par_momentum_coef(float *w, const float *g, float *buf, const float *lr, const float *coef, uint64_t n,
                  uint64_t mu, uint64_t weightDecay, uint64_t nesterov, uint64_t lrScale, uint64_t) {
  par::cuda::momentum(w, g, buf, lr, coef, n, mu, weightDecay, nesterov, lrScale);
}
