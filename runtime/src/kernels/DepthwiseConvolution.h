// Convolutions of one channel a group, and their gradients, on plain tensors.
#pragma once

#include <cstdint>

namespace par::kernels {

/// Images [n, channels, in0, in1, in2], a window a channel [channels, window0, window1, window2], output images
/// [n, channels, out0, out1, out2]. A plane lies in a core's caches while all windows pass over it. oneDNN's forms want
/// channels in blocks, whose reorders take twice the time of the sums, and for windows of 5 x 5 and more it has no
/// code of its own for the filter's gradient: it copies patches, which takes many times as long as this.
struct DepthwiseConvolution {
  int64_t n, channels;
  const uint64_t *in, *window, *out, *stride, *low, *dilation;

  // For channels [begin, end); padding is 0.
  void forward(const float *x, const float *w, float *y, int64_t begin, int64_t end) const;
  void inputGrad(const float *dy, const float *w, float *dx, int64_t begin, int64_t end) const;
  void filterGrad(const float *x, const float *dy, float *dw, int64_t begin, int64_t end) const;
};

} // namespace par::kernels
