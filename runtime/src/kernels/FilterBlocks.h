// The layout that oneDNN's gradient of a filter likes best, and its way back.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <optional>

namespace par::kernels {

/// A filter [o, c, window...] in blocks of 16 x 16 outputs and channels, the elements of the window outside
/// the block. The library's own reorder of it to a plain layout takes three times as long as it needs to.
struct FilterBlocks {
  int64_t o, c, window;          ///< sizes; the window as one
  int64_t outputStride, cStride; ///< elements from one block to the next
  bool outputsInside;            ///< outputs are the inner dim of a block, not channels

  /// None if the tensor is laid out in another way.
  static std::optional<FilterBlocks> read(const dnnl::memory::desc &blocked);

  /// To [o, c, window...], row-major.
  void unpack(const float *blocked, float *plain) const;
};

} // namespace par::kernels
