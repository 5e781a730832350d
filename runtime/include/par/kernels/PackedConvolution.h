// Convolutions on tensors that have channels last, with the ops after them fused: the builtin "convolution_last".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace par::kernels {

class LastCall;
class LastConvolution;

/// One convolution of a program whose filter does not change from call to call: packed once as the library wants it,
/// times the scale of each output channel.
class PackedConvolution {
public:
  PackedConvolution();
  PackedConvolution(PackedConvolution &&) noexcept;
  ~PackedConvolution();

  /// Computes the builtin's call. Packs the filter if that was not done, if it lies elsewhere than before, or if the
  /// scale is another one.
  void run(void *const *ptr, const uint64_t *imm);
  /// The filter may have been written.
  void forget();
  /// Bytes beside the arena.
  size_t bytes() const;

private:
  /// Computes the call again, bounds apart from the library, which gives the lower one for a NaN.
  void keepNan(void *const *ptr, const uint64_t *imm);

  /// A cache's: the library wants memory from a line's begin.
  struct alignas(64) Line {
    float values[16];
  };

  const LastConvolution *convolution = nullptr;
  const float *source = nullptr; ///< the filter that is packed
  std::vector<Line> packed;
  std::vector<float> scale;
  std::unique_ptr<LastCall> call;
  std::unique_ptr<PackedConvolution> unbounded; ///< where there has been a NaN
};

} // namespace par::kernels
