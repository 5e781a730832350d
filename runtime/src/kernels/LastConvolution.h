// One shape of the builtin "convolution_last", ready to run.
#pragma once

#include "ConvolutionSizes.h"
#include "par/kernels/Builtins.h"
#include "par/kernels/PackedConvolution.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace par::kernels {

/// Immediates after those of all convolutions.
enum LastImmediate : size_t { HasScale = convolutionImmediateCount, HasBias, HasResidual, Low, High };

/// The operands of a call by name; null where the immediates leave them out.
struct LastOperands {
  LastOperands(void *const *ptr, const uint64_t *imm, ResidualPlace place);

  const float *x, *w;
  float *y;
  const float *scale = nullptr, *bias = nullptr, *residual = nullptr;
};

/// A primitive of the library for dense tensors with channels last, or, for shapes that it computes slowly there, in
/// the layouts that it likes best.
class LastConvolution {
public:
  LastConvolution(const uint64_t *imm, ConvolutionWay way);

  /// Floats of the packed filter.
  size_t packedSize() const { return primitive.weights_desc().get_size() / sizeof(float); }
  /// Equal bytes: the packed filter of the same filter and scale has the same bytes.
  std::string describePacked() const;
  /// Whether a value of an image affects results that it is no term of, by rounding, or by being no number.
  bool isTransformed() const { return transformed; }
  /// Magnitudes below it are so small that no sum of the transforms overflows with this packed filter: inputs are
  /// multiplied by at most 2^10, results by 2^9, for transforms of 6 x 6 numbers.
  float transformableBelow(const float *packed) const;
  bool isBounded() const { return !std::isinf(low) || !std::isinf(high); }
  size_t outputSize() const { return output.get_size() / sizeof(float); }
  /// The nearest value in the bounds; a NaN stays.
  float bounded(float value) const { return std::clamp(value, float(low), float(high)); }
  /// The filter as the library wants it; each output channel times its scale, if there is one.
  void pack(const float *filter, const float *scale, float *to) const;

private:
  friend class LastCall;
  using Desc = dnnl::memory::desc;
  using Forward = dnnl::convolution_forward::primitive_desc;

  enum class Layout { ChannelsLast, Any };

  Forward describe(dnnl::algorithm algorithm, Layout layout) const;
  Forward describeDirect() const;
  bool isFasterTransformed() const;

  ConvolutionSizes sizes;
  bool hasBias, hasResidual, transformed = false;
  double low, high;
  Desc input, filter, output, bias;
  Forward primitive;
  dnnl::convolution_forward convolution;
  dnnl::reorder packs, enters, leaves;
};

/// A shape with the library's objects for one packed filter, which cost as much as a small convolution to make.
class LastCall {
public:
  /// Both outlive it.
  LastCall(const LastConvolution &convolution, const float *packed);
  enum class Outcome {
    Written,
    MetNan, ///< the result is written, bounds perhaps for NaN; a residual in place was finite
    Refused ///< nothing is written: a transform would spread a value, or bounds would hide one that the residual holds
  };
  Outcome run(const LastOperands &operands);

private:
  bool mayCompute(const LastOperands &operands) const;
  /// Returns whether a NaN may have become a bound.
  bool convolve();

  const LastConvolution &of;
  float limit;    ///< of what is transformed
  size_t own, in; ///< bytes of the scratch before the input and the output in the library's layouts
  size_t scratchBytes;
  dnnl::stream stream;
  dnnl::memory x, y, from, to, bias, scratchpad;
  std::unordered_map<int, dnnl::memory> arguments;
};

/// Each shape is prepared when it is met first.
const LastConvolution &lastConvolutionFor(const uint64_t *imm, ConvolutionWay way);

} // namespace par::kernels
