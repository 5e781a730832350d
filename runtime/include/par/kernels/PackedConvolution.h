// Convolutions on tensors that have channels last, with the ops after them fused: the builtin "convolution_last".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace par::kernels {

class LastCall;
class LastConvolution;
struct LastOperands;

/// How a convolution is computed: as sums of its own terms, or, where that is faster, from transforms of pieces of
/// images (Winograd's minimal filtering), with fewer multiplications and about the same error.
enum class ConvolutionWay { Fastest, Direct };

/// Whether a residual is an operand of its own (builtin "convolution_last") or lies where the result is to lie
/// ("convolution_last_add").
enum class ResidualPlace { Operand, Result };

/// One convolution of a program whose filter does not change from call to call: packed once as the library wants it,
/// times the scale of each output channel.
class PackedConvolution {
public:
  explicit PackedConvolution(ResidualPlace place = ResidualPlace::Operand,
                             ConvolutionWay way = ConvolutionWay::Fastest);
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
  /// Computes the call again, directly, and bounds apart from the library, which gives the lower one for a NaN.
  void runExactly(void *const *ptr, const uint64_t *imm);
  /// The same for a residual in place: still there, or, if the library has written the result, finite.
  void runExactlyInPlace(void *const *ptr, const uint64_t *imm, bool isWritten);
  void pack(const LastOperands &operands, size_t outputs);

  /// A cache's: the library wants memory from a line's begin.
  struct alignas(64) Line {
    float values[16];
  };

  ResidualPlace place;
  ConvolutionWay way;
  const LastConvolution *convolution = nullptr;
  const float *source = nullptr; ///< the filter that is packed
  std::unique_ptr<Line[]> packed;
  size_t lines = 0; ///< of `packed`
  std::vector<float> scale;
  std::unique_ptr<LastCall> call;
  std::unique_ptr<PackedConvolution> exact; ///< unbounded; where it has been needed
};

} // namespace par::kernels
