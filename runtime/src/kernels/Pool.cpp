// Largest elements of windows, and their gradient, plane by plane.
#include "Lanes.h"
#include "par/kernels/Builtins.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

namespace par::kernels {
namespace {

/// The immediates of the table, by name; the last of the three dims is the innermost.
struct PoolSizes {
  explicit PoolSizes(const uint64_t *imm)
      : planes(imm[0]), in(imm + 1), window(imm + 4), out(imm + 7), stride(imm + 10), low(imm + 13), high(imm + 16),
        dilation(imm + 19) {}
  uint64_t inputPlane() const { return in[0] * in[1] * in[2]; }
  uint64_t outputPlane() const { return out[0] * out[1] * out[2]; }
  /// Index of element `k` of window `y` along a dim; outside it is negative or past the end.
  int64_t position(int dim, uint64_t y, uint64_t k) const {
    return int64_t(y * stride[dim] + k * dilation[dim]) - int64_t(low[dim]);
  }
  bool isInside(int dim, int64_t at) const { return at >= 0 && at < int64_t(in[dim]); }

  uint64_t planes;
  const uint64_t *in, *window, *out, *stride, *low, *high, *dilation;
};

/// The windows of one row of the result of which an element of the window lies inside: [begin, end), and where the
/// first one's does, from the plane's start.
struct Taps {
  uint64_t begin, end;
  int64_t first;
};

/// Calls visit(taps) for every element of the window that lies inside for some window of row (y0, y1), row-major.
template <typename Visit>
void forEachTap(const PoolSizes &s, uint64_t y0, uint64_t y1, Visit visit) {
  for (uint64_t k0 = 0; k0 < s.window[0]; ++k0)
    for (uint64_t k1 = 0; k1 < s.window[1]; ++k1) {
      int64_t p0 = s.position(0, y0, k0), p1 = s.position(1, y1, k1);
      if (!s.isInside(0, p0) || !s.isInside(1, p1))
        continue;
      for (uint64_t k2 = 0; k2 < s.window[2]; ++k2) {
        auto stride = int64_t(s.stride[2]), start = s.position(2, 0, k2), length = int64_t(s.in[2]);
        int64_t begin = start >= 0 ? 0 : (-start + stride - 1) / stride;
        int64_t end = start >= length ? 0 : std::min<int64_t>(int64_t(s.out[2]), (length - 1 - start) / stride + 1);
        if (begin < end)
          visit(Taps{uint64_t(begin), uint64_t(end), (p0 * int64_t(s.in[1]) + p1) * length + start + begin * stride});
      }
    }
}

/// Calls run(stride) with a stride that the compiler knows where it is a usual one: such loads need no gathering.
template <typename Run>
PAR_INLINE void withStride(uint64_t stride, Run run) {
  if (stride == 1)
    run(std::integral_constant<uint64_t, 1>());
  else if (stride == 2)
    run(std::integral_constant<uint64_t, 2>());
  else
    run(stride);
}

// The old values are read through a second, equal pointer: otherwise the choice between old and new value becomes a
// masked store, which takes AMD's cores 18 cycles.
/// y[i] = the larger of old[i] and x[i stride].
PAR_CLONES void maxRow(const float *x, const float *old, float *y, uint64_t n, uint64_t stride) {
  withStride(stride, [=](auto step) __attribute__((always_inline)) {
    PAR_INDEPENDENT
    for (uint64_t i = 0; i < n; ++i) {
      float value = x[i * step];
      y[i] = value > old[i] || value != value ? value : old[i];
    }
  });
}

struct Found {
  float *best;
  int32_t *place;
};

/// Remembers where the largest element is met first, or the last NaN as in PyTorch; -1: not yet. The saved result is
/// not compared: x may have been recomputed, and an element that differs in its last bit would get no gradient. `old`
/// is `found`.
PAR_CLONES void findRow(const float *x, Found old, Found found, uint64_t n, uint64_t stride, int32_t first) {
  withStride(stride, [=](auto step) __attribute__((always_inline)) {
    PAR_INDEPENDENT
    for (uint64_t i = 0; i < n; ++i) {
      float value = x[i * step], best = old.best[i];
      int32_t place = old.place[i];
      bool larger = (place < 0) | (value > best) | (value != value); // no branches
      found.best[i] = larger ? value : best;
      found.place[i] = larger ? first + int32_t(i * step) : place;
    }
  });
}

} // namespace

void maxPool(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  PoolSizes s(imm);
  for (uint64_t plane = tile0; plane < tile1 && plane < s.planes; ++plane) {
    const float *x = static_cast<const float *>(ptr[0]) + plane * s.inputPlane();
    float *y = static_cast<float *>(ptr[1]) + plane * s.outputPlane();
    std::fill_n(y, s.outputPlane(), -std::numeric_limits<float>::infinity());
    for (uint64_t y0 = 0; y0 < s.out[0]; ++y0)
      for (uint64_t y1 = 0; y1 < s.out[1]; ++y1, y += s.out[2])
        forEachTap(s, y0, y1, [&](const Taps &taps) {
          maxRow(x + taps.first, y + taps.begin, y + taps.begin, taps.end - taps.begin, s.stride[2]);
        });
  }
}

void maxPoolGrad(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  PoolSizes s(imm);
  std::vector<int32_t> places(s.out[2]);
  std::vector<float> best(s.out[2]);
  for (uint64_t plane = tile0; plane < tile1 && plane < s.planes; ++plane) {
    const float *ct = static_cast<const float *>(ptr[0]) + plane * s.outputPlane();
    const float *x = static_cast<const float *>(ptr[1]) + plane * s.inputPlane();
    float *dx = static_cast<float *>(ptr[3]) + plane * s.inputPlane();
    std::fill_n(dx, s.inputPlane(), 0.0f);
    for (uint64_t y0 = 0; y0 < s.out[0]; ++y0)
      for (uint64_t y1 = 0; y1 < s.out[1]; ++y1, ct += s.out[2]) {
        std::fill(places.begin(), places.end(), -1);
        forEachTap(s, y0, y1, [&](const Taps &taps) {
          Found found{best.data() + taps.begin, places.data() + taps.begin};
          findRow(x + taps.first, found, found, taps.end - taps.begin, s.stride[2], int32_t(taps.first));
        });
        for (uint64_t i = 0; i < s.out[2]; ++i)
          if (places[i] >= 0)
            dx[places[i]] += ct[i];
      }
  }
}

} // namespace par::kernels
