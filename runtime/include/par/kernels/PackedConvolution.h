// Convolutions on tensors that have channels last, with the ops after them fused: the builtin "convolution_last".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
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

/// A packed filter by itself, for a later process.
struct PackedFilter {
  std::string kind; ///< hash of all that it depends on beside the filter: layout and scale
  std::span<const float> values;
};

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
  /// The filter may have been written, and one that was lent is not valid any more.
  void forget();
  /// None before the first run, and after forget(). It lies there until the next of these.
  std::optional<PackedFilter> packedFilter() const;
  /// The filter as packedFilter() gave it for the same filter, to be used instead of packing where it is of the kind
  /// that the next run wants. It begins at a cache's line and stays until forget().
  void lend(const PackedFilter &filter) { lent = filter; }
  /// Bytes beside the arena.
  size_t bytes() const;

private:
  /// Computes the call again, directly, and bounds apart from the library, which gives the lower one for a NaN.
  void runExactly(void *const *ptr, const uint64_t *imm);
  /// The same for a residual in place: still there, or, if the library has written the result, finite.
  void runExactlyInPlace(void *const *ptr, const uint64_t *imm, bool isWritten);
  void prepare(const LastOperands &operands, size_t outputs);
  void pack(const LastOperands &operands);
  std::string kindOfFilter() const;

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
  std::optional<PackedFilter> lent;
  const float *inUse = nullptr; ///< `packed`, or what was lent
  std::vector<float> scale;
  std::unique_ptr<LastCall> call;
  std::unique_ptr<PackedConvolution> exact; ///< unbounded; where it has been needed
};

} // namespace par::kernels
