// Convolutions whose filter meets every element of the input once: products of matrices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace par::kernels {

/// Images [c, places], filter [o, c], output images [o, places]; `n` images of each.
struct ConvolutionProduct {
  int64_t n, c, o, places;

  void forward(const float *x, const float *w, float *y) const;
  void inputGrad(const float *dy, const float *w, float *dx) const;
  void filterGrad(const float *x, const float *dy, float *dw) const;
};

/// Memory of this thread, on a 64-byte boundary, for tensors in other layouts; as large as any kernel has needed. What
/// it held before is lost.
std::byte *convolutionScratch(size_t bytes);

} // namespace par::kernels
