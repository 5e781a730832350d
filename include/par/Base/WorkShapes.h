// The shapes of work whose time depends on more than its operations and bytes.
#pragma once

#include "par/format/Program.h"

namespace par {

/// `batch` matmuls of [m, k] by [k, n].
struct MatmulShape {
  format::DType type = format::DType::F32;   ///< of both operands
  format::DType result = format::DType::F32; ///< of what is written
  bool transposeA = false, transposeB = false;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool adds = false; ///< to what the result holds, which is then read too

  int64_t flops() const { return 2 * batch * m * n * k; }
  /// Read and written; operands that repeat over the batch count as often as they are read.
  int64_t bytes() const;
};

/// Attention of `heads` heads, of which `groups` have keys and values of their own.
struct AttentionShape {
  format::DType type = format::DType::F32;
  bool backward = false;
  int64_t batch = 1, heads = 1, groups = 1, queries = 1, keys = 1;
  int64_t dim = 1, valueDim = 1; ///< of a key, and of a value
  bool causal = false;

  /// Its matmuls, each of the size of the scores, are two forward and five backward; half of that if it is causal.
  int64_t flops() const;
  /// Queries, keys, values and results; backward their cotangents too.
  int64_t bytes() const;
};

/// Which of a convolution's three tensors is computed.
enum class ConvolutionPass : uint8_t { Forward, Data, Weights };

struct ConvolutionShape {
  format::DType type = format::DType::F32;
  ConvolutionPass pass = ConvolutionPass::Forward;
  /// `channels` of one group, `outputs` of all; elements of a window, and windows of an image.
  int64_t images = 1, groups = 1, channels = 1, outputs = 1, window = 1, positions = 1;

  int64_t flops() const { return 2 * images * channels * outputs * window * positions; }
  /// Its three tensors, the input about as large as one position for each element.
  int64_t bytes() const;
};

} // namespace par
