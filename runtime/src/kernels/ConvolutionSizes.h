// The immediates of the convolutions' builtins, by name.
#pragma once

#include "ConvolutionMatmul.h"
#include "DepthwiseConvolution.h"
#include "GappedWindows.h"

#include <cstdint>
#include <dnnl.hpp>

namespace par::kernels {

struct ConvolutionSizes {
  explicit ConvolutionSizes(const uint64_t *imm)
      : n(imm[0]), groups(imm[1]), c(imm[2]), o(imm[3]), in(imm + 4), window(imm + 7), out(imm + 10), stride(imm + 13),
        low(imm + 16), high(imm + 19), dilation(imm + 22) {
    while (first < 2 && in[first] == 1 && window[first] == 1 && out[first] == 1)
      ++first;
    if (first == 2)
      first = 1; // oneDNN's 1-d convolutions are no faster
  }

  /// Appends the spatial dims that are not padded with 1.
  dnnl::memory::dims spatial(dnnl::memory::dims dims, const uint64_t *sizes) const {
    for (int dim = first; dim < 3; ++dim)
      dims.push_back(int64_t(sizes[dim]));
    return dims;
  }
  /// True if windows are of one element and need no padding: a matmul.
  bool isProduct() const {
    for (int dim = 0; dim < 3; ++dim)
      if (window[dim] != 1 || low[dim] != 0 || high[dim] != 0)
        return false;
    return groups == 1;
  }
  ConvolutionMatmul product() const { return {int64_t(n), int64_t(c), int64_t(o), in, out, stride}; }

  bool isDepthwise() const { return c == 1 && o == groups && groups > 1; }
  DepthwiseConvolution depthwise() const {
    return {int64_t(n), int64_t(groups), in, window, out, stride, low, dilation};
  }

  GappedWindows gapped() const {
    return {int64_t(n), int64_t(groups), int64_t(c), int64_t(o), in, window, out, stride, low, dilation};
  }
  bool hasGaps() const {
    for (int dim = 0; dim < 3; ++dim)
      if (window[dim] > 1 && dilation[dim] > 1)
        return true;
    return false;
  }

  uint64_t n, groups, c, o;
  const uint64_t *in, *window, *out, *stride, *low, *high, *dilation;
  int first = 0;
};

} // namespace par::kernels
