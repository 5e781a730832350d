// Largest elements of windows, and their gradient. x of the grid is the plane, y a part of it.
#include "Kernel.cuh"

namespace par::cuda {
namespace {

/// One dim of a pool; planes have fewer than 2^31 elements.
struct Dim {
  int in, window, out, stride, low, dilation;

  __device__ int position(int y, int k) const { return y * stride + k * dilation - low; }
  __device__ bool isInside(int at) const { return at >= 0 && at < in; }
  /// The windows that may hold element `at`: [firstWindow, lastWindow].
  __device__ int firstWindow(int at) const {
    int past = at + low - (window - 1) * dilation;
    return past <= 0 ? 0 : (past + stride - 1) / stride;
  }
  __device__ int lastWindow(int at) const { return smaller((at + low) / stride, out - 1); }
  /// Which element of window y lies at `at`, or -1.
  __device__ int tap(int y, int at) const {
    int past = at + low - y * stride;
    return past % dilation == 0 && past / dilation < window ? past / dilation : -1;
  }
};

struct Pool {
  Dim dim[3];
  /// Every window between an element's first and last one holds it.
  __device__ bool isDense() const { return dim[0].dilation == 1 && dim[1].dilation == 1 && dim[2].dilation == 1; }
  __device__ unsigned inputPlane() const { return unsigned(dim[0].in) * dim[1].in * dim[2].in; }
  __device__ unsigned outputPlane() const { return unsigned(dim[0].out) * dim[1].out * dim[2].out; }
};

/// Calls visit(index in the plane) for the elements of window (y0, y1, y2) that lie inside, row-major, until it says
/// false.
template <typename Visit>
__device__ inline bool forWindow(const Pool &p, int y0, int y1, int y2, Visit visit) {
  for (int k0 = 0; k0 < p.dim[0].window; ++k0) {
    int p0 = p.dim[0].position(y0, k0);
    for (int k1 = 0; p.dim[0].isInside(p0) && k1 < p.dim[1].window; ++k1) {
      int p1 = p.dim[1].position(y1, k1);
      for (int k2 = 0; p.dim[1].isInside(p1) && k2 < p.dim[2].window; ++k2) {
        int p2 = p.dim[2].position(y2, k2);
        if (p.dim[2].isInside(p2) && !visit((p0 * p.dim[1].in + p1) * p.dim[2].in + p2))
          return false;
      }
    }
  }
  return true;
}

/// Whether element `at` is the first largest of the window, or its last NaN. The saved result is not asked:
/// see the CPU's form.
__device__ inline bool isFirst(const Pool &p, const float *x, int at, float own, int y0, int y1, int y2) {
  // Most windows have an element that rules this one out among their first.
  return forWindow(p, y0, y1, y2, [&](int other) {
    float value = x[other];
    if (value != value)
      return other <= at && own != own;
    return own != own || (other < at ? value < own : value <= own);
  });
}

/// Place in the plane of a window's first largest element, or of its last NaN; a window without elements has none.
__device__ inline unsigned findFirst(const Pool &p, const float *x, int y0, int y1, int y2) {
  float top = 0;
  int place = -1;
  forWindow(p, y0, y1, y2, [&](int at) {
    float value = x[at];
    bool larger = place < 0 || value > top || value != value;
    top = larger ? value : top;
    place = larger ? at : place;
    return true;
  });
  return unsigned(place);
}

/// The sum of ct over the windows that `isOf(window of the plane, its coordinates)` says are the element's own, in
/// their order.
template <typename IsOf>
__device__ inline float gathered(const Pool &p, const float *ct, int i0, int i1, int i2, IsOf isOf) {
  float sum = 0;
  for (int y0 = p.dim[0].firstWindow(i0); y0 <= p.dim[0].lastWindow(i0); ++y0)
    for (int y1 = p.dim[1].firstWindow(i1); y1 <= p.dim[1].lastWindow(i1); ++y1)
      for (int y2 = p.dim[2].firstWindow(i2); y2 <= p.dim[2].lastWindow(i2); ++y2) {
        if (!p.isDense() && (p.dim[0].tap(y0, i0) < 0 || p.dim[1].tap(y1, i1) < 0 || p.dim[2].tap(y2, i2) < 0))
          continue;
        unsigned window = (unsigned(y0) * p.dim[1].out + y1) * p.dim[2].out + y2;
        if (isOf(window, y0, y1, y2))
          sum += ct[window];
      }
  return sum;
}

} // namespace
} // namespace par::cuda

#define PAR_POOL_PARAMETERS                                                                                            \
  uint64_t, uint64_t i0, uint64_t i1, uint64_t i2, uint64_t k0, uint64_t k1, uint64_t k2, uint64_t y0, uint64_t y1,    \
      uint64_t y2, uint64_t s0, uint64_t s1, uint64_t s2, uint64_t l0, uint64_t l1, uint64_t l2, uint64_t, uint64_t,   \
      uint64_t, uint64_t d0, uint64_t d1, uint64_t d2
#define PAR_POOL                                                                                                       \
  Pool {                                                                                                               \
    {                                                                                                                  \
      {int(i0), int(k0), int(y0), int(s0), int(l0), int(d0)}, {int(i1), int(k1), int(y1), int(s1), int(l1), int(d1)},  \
      {                                                                                                                \
        int(i2), int(k2), int(y2), int(s2), int(l2), int(d2)                                                           \
      }                                                                                                                \
    }                                                                                                                  \
  }

PAR_ENTRY(256)
par_max_pool(const float *x, float *y, PAR_POOL_PARAMETERS) {
  using namespace par::cuda;
  const Pool p = PAR_POOL;
  const float *from = x + blockIdx.x * uint64_t(p.inputPlane());
  float *to = y + blockIdx.x * uint64_t(p.outputPlane());
  unsigned size = p.outputPlane(), step = gridDim.y * blockDim.x;
  for (unsigned i = blockIdx.y * blockDim.x + threadIdx.x; i < size; i += step) {
    unsigned row = i / unsigned(p.dim[2].out);
    float top = -INFINITY;
    forWindow(p, int(row / p.dim[1].out), int(row % p.dim[1].out), int(i % p.dim[2].out), [&](int at) {
      float value = from[at];
      top = value > top || value != value ? value : top;
      return true;
    });
    to[i] = top;
  }
}

/// Each element of dx asks the windows that hold it, in their order: the same additions as on the CPU. A plane's
/// windows are looked through once where one block has room for what they find.
PAR_ENTRY(256)
par_max_pool_grad(const float *dy, const float *x, const float *, float *dx, PAR_POOL_PARAMETERS) {
  using namespace par::cuda;
  PAR_DYNAMIC_SHARED(uint16_t, places);
  const Pool p = PAR_POOL;
  const float *from = x + blockIdx.x * uint64_t(p.inputPlane()), *ct = dy + blockIdx.x * uint64_t(p.outputPlane());
  float *to = dx + blockIdx.x * uint64_t(p.inputPlane());
  unsigned size = p.inputPlane(), windows = p.outputPlane();
  const bool keeps = poolKeepsPlaces(size, windows);
  for (unsigned i = threadIdx.x; keeps && i < windows; i += blockDim.x) {
    unsigned row = i / unsigned(p.dim[2].out);
    places[i] = uint16_t(findFirst(p, from, int(row / p.dim[1].out), int(row % p.dim[1].out), int(i % p.dim[2].out)));
  }
  __syncthreads();
  for (unsigned i = blockIdx.y * blockDim.x + threadIdx.x; i < size; i += gridDim.y * blockDim.x) {
    unsigned row = i / unsigned(p.dim[2].in);
    int i0 = int(row / p.dim[1].in), i1 = int(row % p.dim[1].in), i2 = int(i % p.dim[2].in);
    if (keeps) {
      to[i] = gathered(p, ct, i0, i1, i2, [&](unsigned window, int, int, int) { return places[window] == i; });
      continue;
    }
    float own = from[i];
    to[i] = gathered(p, ct, i0, i1, i2,
                     [&](unsigned, int y0, int y1, int y2) { return isFirst(p, from, int(i), own, y0, y1, y2); });
  }
}
