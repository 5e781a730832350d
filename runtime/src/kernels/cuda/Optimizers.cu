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

__device__ inline AdamwScalars adamwScalars(const float *step, const float *lr, const float *coef, uint64_t beta1,
                                            uint64_t beta2, uint64_t eps, uint64_t weightDecay, uint64_t lrScale) {
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

/// Computed by one thread of the block for all.
__device__ inline AdamwScalars adamwScalarsOfBlock(const float *step, const float *lr, const float *coef,
                                                   uint64_t beta1, uint64_t beta2, uint64_t eps, uint64_t weightDecay,
                                                   uint64_t lrScale) {
  PAR_SHARED(AdamwScalars, ofBlock, 1);
  if (threadIdx.x == 0 && threadIdx.y == 0)
    ofBlock[0] = adamwScalars(step, lr, coef, beta1, beta2, eps, weightDecay, lrScale);
  __syncthreads();
  return ofBlock[0];
}

/// N elements of the weight and its states, and of the gradient.
template <int N>
__device__ inline void adamwElements(float *__restrict__ w, const float *__restrict__ g, float *__restrict__ m,
                                     float *__restrict__ v, const AdamwScalars &s) {
  Vector<float, N> wi = load<N>(w), gi = load<N>(g), mi = load<N>(m), vi = load<N>(v);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    float d = gi[k] * s.coef;
    mi[k] += (d - mi[k]) * s.oneMinusBeta1;
    vi[k] = vi[k] * s.beta2 + d * d * s.oneMinusBeta2;
    wi[k] = wi[k] * s.decay - s.stepSize * (mi[k] / (sqrtf(vi[k]) / s.rootOfCorrection2 + s.eps));
  }
  store<N>(w, wi);
  store<N>(m, mi);
  store<N>(v, vi);
}

__device__ inline void adamw(float *__restrict__ w, const float *__restrict__ g, float *__restrict__ m,
                             float *__restrict__ v, const float *step, const float *lr, const float *coef, uint64_t n,
                             uint64_t beta1, uint64_t beta2, uint64_t eps, uint64_t weightDecay, uint64_t lrScale) {
  const AdamwScalars s = adamwScalarsOfBlock(step, lr, coef, beta1, beta2, eps, weightDecay, lrScale);
  forChunk(
      n, [&](auto width, uint64_t i) { adamwElements<decltype(width)::value>(w + i, g + i, m + i, v + i, s); }, w, g, m,
      v);
}

struct SgdScalars {
  float rate, decay, coef;
};

__device__ inline SgdScalars sgdScalars(const float *lr, const float *coef, uint64_t weightDecay, uint64_t lrScale) {
  return {static_cast<float>(*lr * real(lrScale)), static_cast<float>(real(weightDecay)), coefficient(coef)};
}

template <int N>
__device__ inline void sgdElements(float *__restrict__ w, const float *__restrict__ g, const SgdScalars &s) {
  Vector<float, N> wi = load<N>(w), gi = load<N>(g);
#pragma unroll
  for (int k = 0; k < N; ++k)
    wi[k] -= s.rate * (gi[k] * s.coef + s.decay * wi[k]);
  store<N>(w, wi);
}

__device__ inline void sgd(float *__restrict__ w, const float *__restrict__ g, const float *lr, const float *coef,
                           uint64_t n, uint64_t weightDecay, uint64_t lrScale) {
  SgdScalars s = sgdScalars(lr, coef, weightDecay, lrScale);
  forChunk(n, [&](auto width, uint64_t i) { sgdElements<decltype(width)::value>(w + i, g + i, s); }, w, g);
}

struct MomentumScalars {
  SgdScalars sgd;
  float mu, ownShare, bufShare;
};

__device__ inline MomentumScalars momentumScalars(const float *lr, const float *coef, uint64_t momentum,
                                                  uint64_t weightDecay, uint64_t nesterov, uint64_t lrScale) {
  auto mu = static_cast<float>(real(momentum));
  return {sgdScalars(lr, coef, weightDecay, lrScale), mu, nesterov ? 1.0f : 0.0f, nesterov ? mu : 1.0f};
}

template <int N>
__device__ inline void momentumElements(float *__restrict__ w, const float *__restrict__ g, float *__restrict__ buf,
                                        const MomentumScalars &s) {
  Vector<float, N> wi = load<N>(w), gi = load<N>(g), bi = load<N>(buf);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    float d = gi[k] * s.sgd.coef + s.sgd.decay * wi[k];
    bi[k] = s.mu * bi[k] + d;
    wi[k] -= s.sgd.rate * (s.ownShare * d + s.bufShare * bi[k]);
  }
  store<N>(w, wi);
  store<N>(buf, bi);
}

__device__ inline void momentum(float *__restrict__ w, const float *__restrict__ g, float *__restrict__ buf,
                                const float *lr, const float *coef, uint64_t n, uint64_t momentum, uint64_t weightDecay,
                                uint64_t nesterov, uint64_t lrScale) {
  MomentumScalars s = momentumScalars(lr, coef, momentum, weightDecay, nesterov, lrScale);
  forChunk(
      n, [&](auto width, uint64_t i) { momentumElements<decltype(width)::value>(w + i, g + i, buf + i, s); }, w, g,
      buf);
}

/// The row of this team, if the table has it: calls body(width, elements before it in the table, and in the gradient).
template <typename Body, typename... Tables>
__device__ inline void forRow(const int64_t *index, const float *g, uint64_t n, uint64_t width, uint64_t rows,
                              Body body, const Tables *...tables) {
  uint64_t row = teamRow();
  if (row >= n || index[row] < 0 || uint64_t(index[row]) >= rows)
    return;
  uint64_t at = uint64_t(index[row]) * width, of = row * width;
  forEach<4, 1>(width, headOf<4>(width, g + of, tables + at...), threadIdx.x, blockDim.x,
                [&](auto vector, uint64_t i) { body(vector, at + i, of + i); });
}

__device__ inline void adamwRows(float *w, const float *g, float *m, float *v, const float *step, const float *lr,
                                 const int64_t *index, const float *coef, uint64_t n, uint64_t width, uint64_t rows,
                                 uint64_t beta1, uint64_t beta2, uint64_t eps, uint64_t weightDecay, uint64_t lrScale) {
  const AdamwScalars s = adamwScalarsOfBlock(step, lr, coef, beta1, beta2, eps, weightDecay, lrScale);
  forRow(
      index, g, n, width, rows,
      [&](auto vector, uint64_t at, uint64_t of) {
        adamwElements<decltype(vector)::value>(w + at, g + of, m + at, v + at, s);
      },
      w, m, v);
}

__device__ inline void sgdRows(float *w, const float *g, const float *lr, const int64_t *index, const float *coef,
                               uint64_t n, uint64_t width, uint64_t rows, uint64_t weightDecay, uint64_t lrScale) {
  SgdScalars s = sgdScalars(lr, coef, weightDecay, lrScale);
  forRow(
      index, g, n, width, rows,
      [&](auto vector, uint64_t at, uint64_t of) { sgdElements<decltype(vector)::value>(w + at, g + of, s); }, w);
}

__device__ inline void momentumRows(float *w, const float *g, float *buf, const float *lr, const int64_t *index,
                                    const float *coef, uint64_t n, uint64_t width, uint64_t rows, uint64_t momentum,
                                    uint64_t weightDecay, uint64_t nesterov, uint64_t lrScale) {
  MomentumScalars s = momentumScalars(lr, coef, momentum, weightDecay, nesterov, lrScale);
  forRow(
      index, g, n, width, rows,
      [&](auto vector, uint64_t at, uint64_t of) {
        momentumElements<decltype(vector)::value>(w + at, g + of, buf + at, s);
      },
      w, buf);
}

} // namespace
} // namespace par::cuda

// Each twice: without and with the clip coefficient, which is an operand of its own.

PAR_ENTRY(256)
par_adamw(float *w, const float *g, float *m, float *v, const float *step, const float *lr, uint64_t n, uint64_t beta1,
          uint64_t beta2, uint64_t eps, uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::adamw(w, g, m, v, step, lr, nullptr, n, beta1, beta2, eps, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_adamw_coef(float *w, const float *g, float *m, float *v, const float *step, const float *lr, const float *coef,
               uint64_t n, uint64_t beta1, uint64_t beta2, uint64_t eps, uint64_t weightDecay, uint64_t lrScale,
               uint64_t) {
  par::cuda::adamw(w, g, m, v, step, lr, coef, n, beta1, beta2, eps, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_sgd(float *w, const float *g, const float *lr, uint64_t n, uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::sgd(w, g, lr, nullptr, n, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_sgd_coef(float *w, const float *g, const float *lr, const float *coef, uint64_t n, uint64_t weightDecay,
             uint64_t lrScale, uint64_t) {
  par::cuda::sgd(w, g, lr, coef, n, weightDecay, lrScale);
}

PAR_ENTRY(256)
par_momentum(float *w, const float *g, float *buf, const float *lr, uint64_t n, uint64_t mu, uint64_t weightDecay,
             uint64_t nesterov, uint64_t lrScale, uint64_t) {
  par::cuda::momentum(w, g, buf, lr, nullptr, n, mu, weightDecay, nesterov, lrScale);
}

PAR_ENTRY(256)
par_momentum_coef(float *w, const float *g, float *buf, const float *lr, const float *coef, uint64_t n, uint64_t mu,
                  uint64_t weightDecay, uint64_t nesterov, uint64_t lrScale, uint64_t) {
  par::cuda::momentum(w, g, buf, lr, coef, n, mu, weightDecay, nesterov, lrScale);
}

PAR_ENTRY(512)
par_adamw_rows(float *w, const float *g, float *m, float *v, const float *step, const float *lr, const int64_t *index,
               uint64_t n, uint64_t width, uint64_t rows, uint64_t beta1, uint64_t beta2, uint64_t eps,
               uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::adamwRows(w, g, m, v, step, lr, index, nullptr, n, width, rows, beta1, beta2, eps, weightDecay, lrScale);
}

PAR_ENTRY(512)
par_adamw_rows_coef(float *w, const float *g, float *m, float *v, const float *step, const float *lr,
                    const int64_t *index, const float *coef, uint64_t n, uint64_t width, uint64_t rows, uint64_t beta1,
                    uint64_t beta2, uint64_t eps, uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::adamwRows(w, g, m, v, step, lr, index, coef, n, width, rows, beta1, beta2, eps, weightDecay, lrScale);
}

PAR_ENTRY(512)
par_sgd_rows(float *w, const float *g, const float *lr, const int64_t *index, uint64_t n, uint64_t width, uint64_t rows,
             uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::sgdRows(w, g, lr, index, nullptr, n, width, rows, weightDecay, lrScale);
}

PAR_ENTRY(512)
par_sgd_rows_coef(float *w, const float *g, const float *lr, const int64_t *index, const float *coef, uint64_t n,
                  uint64_t width, uint64_t rows, uint64_t weightDecay, uint64_t lrScale, uint64_t) {
  par::cuda::sgdRows(w, g, lr, index, coef, n, width, rows, weightDecay, lrScale);
}

PAR_ENTRY(512)
par_momentum_rows(float *w, const float *g, float *buf, const float *lr, const int64_t *index, uint64_t n,
                  uint64_t width, uint64_t rows, uint64_t mu, uint64_t weightDecay, uint64_t nesterov, uint64_t lrScale,
                  uint64_t) {
  par::cuda::momentumRows(w, g, buf, lr, index, nullptr, n, width, rows, mu, weightDecay, nesterov, lrScale);
}

PAR_ENTRY(512)
par_momentum_rows_coef(float *w, const float *g, float *buf, const float *lr, const int64_t *index, const float *coef,
                       uint64_t n, uint64_t width, uint64_t rows, uint64_t mu, uint64_t weightDecay, uint64_t nesterov,
                       uint64_t lrScale, uint64_t) {
  par::cuda::momentumRows(w, g, buf, lr, index, coef, n, width, rows, mu, weightDecay, nesterov, lrScale);
}
