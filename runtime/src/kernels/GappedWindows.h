// The gradient of a filter whose windows have gaps, as matmuls with patches of the images.
#pragma once

#include <cstdint>

namespace par::kernels {

/// Images [n, groups, c, in0, in1, in2], filter [o, c, window0, window1, window2], output images [n, o, out0, out1,
/// out2]. For few channels, groups, strides and AVX2, oneDNN 2.6 has no code of its own for such a filter's gradient:
/// it copies patches one element after another, which takes up to three times as long as this.
struct GappedWindows {
  int64_t n, groups, c, o;
  const uint64_t *in, *window, *out, *stride, *low, *dilation;

  /// dw[o, c, window] = the sum over images and places of dy times what the window meets there; padding is 0.
  void filterGrad(const float *x, const float *dy, float *dw) const;

private:
  int64_t at(const uint64_t *sizes, int dim) const { return int64_t(sizes[dim]); }
  int64_t taps() const { return at(window, 0) * at(window, 1) * at(window, 2); }
  int64_t rows() const { return at(out, 0) * at(out, 1); }
  /// Gathers the inputs of windows at output rows [begin, end) of a group's images: [c, window, (end - begin) * out2].
  void fillPatches(const float *x, int64_t begin, int64_t end, float *patches) const;
  void copyRow(const float *row, int64_t offset, float *to) const;
};

} // namespace par::kernels
