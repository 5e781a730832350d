// Depthwise convolutions and their gradients: each channel's plane is copied with its padding, rows regrouped by
// stride, so that windows are sums of shifted vectors.
#include "DepthwiseConvolution.h"

#include "Lanes.h"
#include "Scratch.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace par::kernels {
namespace {

using Lanes = float __attribute__((vector_size(lanes * sizeof(float))));

constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t upToLanes(int64_t count) { return ceilDiv(count, lanes) * lanes; }

/// A plane with its padding, as windows read it: rows of dims 0 and 1, and in each row the columns 0, stride, 2 stride,
/// ... side by side, then 1, stride + 1, ...: what neighbouring windows meet by one tap are neighbours. Vectors may be
/// read whole.
struct Plane {
  int64_t in[3], spread[3], low[3];        ///< the source, how far apart its elements lie, and where the first one does
  int64_t stride[3], dilation[3], taps[3]; ///< of windows
  int64_t out[3];                          ///< windows
  int64_t rows[2], pitch;                  ///< of the plane; of the columns of one phase
  std::vector<int64_t> met;                ///< by each tap of the first window

  /// Sets rows, pitch and met by the rest.
  void layOut() {
    for (int dim : {0, 1})
      rows[dim] = (out[dim] - 1) * stride[dim] + (taps[dim] - 1) * dilation[dim] + 1;
    pitch = upToLanes(upToLanes(out[2]) + ((taps[2] - 1) * dilation[2]) / stride[2]);
    met.clear();
    for (int64_t i = 0; i < taps[0]; ++i)
      for (int64_t j = 0; j < taps[1]; ++j)
        for (int64_t k = 0; k < taps[2]; ++k)
          met.push_back((i * dilation[0] * rows[1] + j * dilation[1]) * row() + place(k * dilation[2]));
  }
  int64_t row() const { return stride[2] * pitch; }
  int64_t size() const { return rows[0] * rows[1] * row(); }
  int64_t place(int64_t column) const { return column % stride[2] * pitch + column / stride[2]; }
  /// Begin of the first window of a row of windows.
  int64_t at(int64_t y, int64_t z) const { return (y * stride[0] * rows[1] + z * stride[1]) * row(); }
  /// Puts a source in its place; all that is not of a source stays.
  void fill(const float *source, float *plane) const;
  void fillRow(const float *source, float *row) const;
};

void Plane::fillRow(const float *source, float *row) const {
  int64_t columns = pitch * stride[2];
  int64_t begin = low[2] >= 0 ? 0 : ceilDiv(-low[2], spread[2]);
  int64_t end = std::min(in[2], columns > low[2] ? ceilDiv(columns - low[2], spread[2]) : 0);
  if (begin >= end)
    return;
  if (stride[2] == 1 && spread[2] == 1)
    std::memcpy(row + low[2] + begin, source + begin, size_t(end - begin) * sizeof(float));
  else if (stride[2] == 1)
    for (int64_t i = begin; i < end; ++i)
      row[low[2] + i * spread[2]] = source[i];
  else // of one phase after the other: no plane has both a stride and gaps
    for (int64_t first = begin; first < std::min(end, begin + stride[2]); ++first) {
      float *to = row + place(low[2] + first);
      for (int64_t i = first; i < end; i += stride[2])
        *to++ = source[i];
    }
}

void Plane::fill(const float *source, float *plane) const {
  for (int64_t y = 0; y < in[0]; ++y)
    for (int64_t z = 0; z < in[1]; ++z) {
      int64_t toY = low[0] + y * spread[0], toZ = low[1] + z * spread[1];
      if (toY >= 0 && toY < rows[0] && toZ >= 0 && toZ < rows[1])
        fillRow(source + (y * in[1] + z) * in[2], plane + (toY * rows[1] + toZ) * row());
    }
}

PAR_INLINE Lanes load(const float *from) {
  Lanes value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

/// Sums of `rowCount` rows of windows from (y, z), and `width` vectors from column `from` in each.
template <int rowCount, int width>
PAR_INLINE void sumWindows(const Plane &p, const float *plane, const float *w, float *to, int64_t y, int64_t z,
                           int64_t from) {
  Lanes sums[rowCount][width] = {};
  const int64_t below = p.stride[1] * p.row(), *met = p.met.data();
  plane += p.at(y, z) + from;
  for (size_t tap = 0, taps = p.met.size(); tap < taps; ++tap)
    for (int row = 0; row < rowCount; ++row)
      for (int part = 0; part < width; ++part)
        sums[row][part] += w[tap] * load(plane + met[tap] + row * below + part * lanes);
  to += (y * p.out[1] + z) * p.out[2] + from;
  int64_t columns = std::min<int64_t>(width * lanes, p.out[2] - from);
  for (int row = 0; row < rowCount; ++row, to += p.out[2]) {
    float whole[width * lanes]; // the sums themselves stay in registers
    for (int part = 0; part < width; ++part)
      __builtin_memcpy(whole + part * lanes, &sums[row][part], sizeof(Lanes));
    std::memcpy(to, whole, size_t(columns) * sizeof(float));
  }
}

/// All windows' sums. Four vectors at a time keep a core's units busy while it waits for one sum: of a row, or of
/// several.
PAR_CLONES void windowSums(const Plane &p, const float *plane, const float *w, float *to) {
  for (int64_t y = 0; y < p.out[0]; ++y)
    for (int64_t from = 0; from < p.out[2];) {
      int64_t left = ceilDiv(p.out[2] - from, lanes), z = 0;
      if (left >= 3) {
        for (; z < p.out[1]; ++z)
          left >= 4 ? sumWindows<1, 4>(p, plane, w, to, y, z, from) : sumWindows<1, 3>(p, plane, w, to, y, z, from);
        from += (left >= 4 ? 4 : 3) * lanes;
      } else if (left == 2) {
        for (; z + 2 <= p.out[1]; z += 2)
          sumWindows<2, 2>(p, plane, w, to, y, z, from);
        for (; z < p.out[1]; ++z)
          sumWindows<1, 2>(p, plane, w, to, y, z, from);
        from += 2 * lanes;
      } else {
        for (; z + 7 <= p.out[1]; z += 7)
          sumWindows<7, 1>(p, plane, w, to, y, z, from);
        for (; z + 2 <= p.out[1]; z += 2)
          sumWindows<2, 1>(p, plane, w, to, y, z, from);
        for (; z < p.out[1]; ++z)
          sumWindows<1, 1>(p, plane, w, to, y, z, from);
        from += lanes;
      }
    }
}

/// dw[0 .. count) += the sums over all windows of dy times what they meet by taps met[0], met[1], ...
template <int count>
PAR_INLINE void sumTaps(const Plane &p, const float *plane, const float *dy, float *dw, const int64_t *met) {
  Lanes sums[count] = {};
  int64_t width = upToLanes(p.out[2]), by[count];
  for (int tap = 0; tap < count; ++tap)
    by[tap] = met[tap];
  for (int64_t y = 0; y < p.out[0]; ++y)
    for (int64_t z = 0; z < p.out[1]; ++z, dy += width) {
      const float *first = plane + p.at(y, z);
      for (int64_t x = 0; x < width; x += lanes) {
        Lanes share = load(dy + x);
        for (int tap = 0; tap < count; ++tap)
          sums[tap] += share * load(first + by[tap] + x);
      }
    }
  for (int tap = 0; tap < count; ++tap) {
    float sum = 0;
    for (int lane = 0; lane < lanes; ++lane)
      sum += sums[tap][lane];
    dw[tap] += sum;
  }
}

/// `dy` in rows of whole vectors, padded with 0.
PAR_CLONES void tapSums(const Plane &p, const float *plane, const float *dy, float *dw) {
  constexpr size_t most = 7;
  for (size_t tap = 0; tap < p.met.size(); tap += most) {
    const int64_t *met = p.met.data() + tap;
    switch (std::min(most, p.met.size() - tap)) {
    case 1:
      sumTaps<1>(p, plane, dy, dw + tap, met);
      break;
    case 2:
      sumTaps<2>(p, plane, dy, dw + tap, met);
      break;
    case 3:
      sumTaps<3>(p, plane, dy, dw + tap, met);
      break;
    case 4:
      sumTaps<4>(p, plane, dy, dw + tap, met);
      break;
    case 5:
      sumTaps<5>(p, plane, dy, dw + tap, met);
      break;
    case 6:
      sumTaps<6>(p, plane, dy, dw + tap, met);
      break;
    default:
      sumTaps<most>(p, plane, dy, dw + tap, met);
    }
  }
}

int64_t product(const uint64_t *sizes) { return int64_t(sizes[0] * sizes[1] * sizes[2]); }

/// The plane that windows pass over forward.
Plane planeOf(const DepthwiseConvolution &c) {
  Plane plane;
  for (int dim = 0; dim < 3; ++dim) {
    plane.in[dim] = int64_t(c.in[dim]), plane.out[dim] = int64_t(c.out[dim]), plane.taps[dim] = int64_t(c.window[dim]);
    plane.stride[dim] = int64_t(c.stride[dim]), plane.dilation[dim] = int64_t(c.dilation[dim]);
    plane.low[dim] = int64_t(c.low[dim]), plane.spread[dim] = 1;
  }
  plane.layOut();
  return plane;
}

/// That of an input's gradient: windows that are turned round pass over the output's, its elements a stride apart.
Plane turned(const DepthwiseConvolution &c) {
  Plane plane = planeOf(c);
  for (int dim = 0; dim < 3; ++dim) {
    std::swap(plane.in[dim], plane.out[dim]);
    plane.spread[dim] = std::exchange(plane.stride[dim], 1);
    plane.low[dim] = (plane.taps[dim] - 1) * plane.dilation[dim] - plane.low[dim];
  }
  plane.layOut();
  return plane;
}

float *zeros(int64_t count) {
  auto *memory = reinterpret_cast<float *>(threadScratch(size_t(count) * sizeof(float)));
  std::fill_n(memory, count, 0.0f);
  return memory;
}

} // namespace

void DepthwiseConvolution::forward(const float *x, const float *w, float *y, int64_t begin, int64_t end) const {
  Plane plane = planeOf(*this);
  float *memory = zeros(plane.size());
  for (int64_t image = 0; image < n; ++image)
    for (int64_t channel = begin; channel < end; ++channel) {
      plane.fill(x + (image * channels + channel) * product(in), memory);
      windowSums(plane, memory, w + channel * product(window), y + (image * channels + channel) * product(out));
    }
}

void DepthwiseConvolution::inputGrad(const float *dy, const float *w, float *dx, int64_t begin, int64_t end) const {
  Plane plane = turned(*this);
  int64_t taps = product(window);
  float *memory = zeros(plane.size() + taps), *round = memory + plane.size();
  for (int64_t channel = begin; channel < end; ++channel) {
    std::reverse_copy(w + channel * taps, w + (channel + 1) * taps, round);
    for (int64_t image = 0; image < n; ++image) {
      plane.fill(dy + (image * channels + channel) * product(out), memory);
      windowSums(plane, memory, round, dx + (image * channels + channel) * product(in));
    }
  }
}

void DepthwiseConvolution::filterGrad(const float *x, const float *dy, float *dw, int64_t begin, int64_t end) const {
  Plane plane = planeOf(*this);
  int64_t rows = plane.out[0] * plane.out[1], columns = plane.out[2], width = upToLanes(columns),
          taps = product(window);
  float *memory = zeros(plane.size() + rows * width), *shares = memory + plane.size();
  std::fill_n(dw + begin * taps, (end - begin) * taps, 0.0f);
  for (int64_t channel = begin; channel < end; ++channel)
    for (int64_t image = 0; image < n; ++image) {
      int64_t which = image * channels + channel;
      plane.fill(x + which * product(in), memory);
      for (int64_t row = 0; row < rows; ++row)
        std::memcpy(shares + row * width, dy + (which * rows + row) * columns, size_t(columns) * sizeof(float));
      tapSums(plane, memory, shares, dw + channel * taps);
    }
}

} // namespace par::kernels
