// Convolutions by windows of one element, without padding: products of matrices.
#pragma once

#include <cstdint>

namespace par::kernels {

/// Images [c, in0, in1, in2], filter [o, c], output images [o, out0, out1, out2]; `n` images of each. Every `stride`-th
/// element of each dim is used.
struct ConvolutionMatmul {
  int64_t n, c, o;
  const uint64_t *in, *out, *stride;

  void forward(const float *x, const float *w, float *y) const;
  void inputGrad(const float *dy, const float *w, float *dx) const;
  void filterGrad(const float *x, const float *dy, float *dw) const;

private:
  int64_t places() const { return int64_t(out[0] * out[1] * out[2]); }
  int64_t inputPlaces() const { return int64_t(in[0] * in[1] * in[2]); }
  /// Every element is used.
  bool isDense() const { return places() == inputPlaces(); }
  /// Calls visit(place) with the places of the input that are used, row-major.
  template <typename Visit>
  void forEachPlace(Visit visit) const;
  void gatherInput(const float *x, float *rows) const;
  void scatterInput(const float *rows, float *x) const;
};

} // namespace par::kernels
