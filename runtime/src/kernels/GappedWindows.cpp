#include "GappedWindows.h"

#include "Scratch.h"
#include "par/kernels/Sgemm.h"

#include <algorithm>

namespace par::kernels {

// Patches of so many bytes are read again from the cache that they were written to.
constexpr int64_t bandBytes = 256 << 10;

/// The elements offset, offset + stride, ... of a row of the images, 0 outside it.
void GappedWindows::copyRow(const float *row, int64_t offset, float *to) const {
  int64_t step = at(stride, 2), count = at(out, 2), size = at(in, 2);
  int64_t begin = std::clamp<int64_t>((step - 1 - offset) / step, 0, count);
  int64_t end = offset >= size ? 0 : std::clamp<int64_t>((size - offset + step - 1) / step, 0, count);
  end = std::max(begin, end);
  std::fill(to, to + begin, 0.0f);
  if (step == 1)
    std::copy(row + offset + begin, row + offset + end, to + begin);
  else
    for (int64_t i = begin; i < end; ++i)
      to[i] = row[offset + i * step];
  std::fill(to + end, to + count, 0.0f);
}

void GappedWindows::fillPatches(const float *x, int64_t begin, int64_t end, float *patches) const {
  int64_t image = at(in, 0) * at(in, 1) * at(in, 2);
  for (int64_t channel = 0; channel < c; ++channel)
    for (int64_t tap = 0; tap < taps(); ++tap) {
      int64_t k = tap % at(window, 2), j = tap / at(window, 2) % at(window, 1),
              i = tap / (at(window, 1) * at(window, 2));
      for (int64_t row = begin; row < end; ++row, patches += at(out, 2)) {
        int64_t y = row / at(out, 1) * at(stride, 0) + i * at(dilation, 0) - at(low, 0);
        int64_t z = row % at(out, 1) * at(stride, 1) + j * at(dilation, 1) - at(low, 1);
        if (y < 0 || y >= at(in, 0) || z < 0 || z >= at(in, 1))
          std::fill_n(patches, at(out, 2), 0.0f);
        else
          copyRow(x + channel * image + (y * at(in, 1) + z) * at(in, 2), k * at(dilation, 2) - at(low, 2), patches);
      }
    }
}

void GappedWindows::filterGrad(const float *x, const float *dy, float *dw) const {
  int64_t image = at(in, 0) * at(in, 1) * at(in, 2), places = rows() * at(out, 2), columns = c * taps(),
          each = o / groups;
  int64_t band = std::clamp<int64_t>(bandBytes / (columns * at(out, 2) * int64_t(sizeof(float))), 1, rows());
  auto *patches = reinterpret_cast<float *>(threadScratch(size_t(columns * band * at(out, 2)) * sizeof(float)));
  for (int64_t part = 0; part < n * groups; ++part) // images of a group
    for (int64_t begin = 0; begin < rows(); begin += band) {
      int64_t end = std::min(rows(), begin + band), size = (end - begin) * at(out, 2);
      fillPatches(x + part * c * image, begin, end, patches);
      sgemm('N', 'T', each, columns, size, 1, {dy + part * each * places + begin * at(out, 2), places}, {patches, size},
            part < groups && begin == 0 ? 0.0f : 1.0f, dw + part % groups * each * columns, columns);
    }
}

} // namespace par::kernels
