// The convolution builtins as graphs of cuDNN.
#pragma once

#include "LibraryGraphs.h"

namespace par::cuda {

/// Bytes of workspace that a convolution may want; each queue has one of the largest of an entry.
inline constexpr uint64_t convolutionWorkspace = uint64_t(256) << 20;

/// One call of a convolution builtin, in any of its forms.
class ConvolutionGraph final : public GraphKernel {
public:
  ConvolutionGraph(const Dnn &dnn, const GraphUse &use);
  static bool isBuiltin(std::string_view builtin);

  /// The heuristic's first is up to fifty times slower than its second. (an H100, cuDNN 9.14, bench/README.md)
  size_t ways() const override { return 8; }
  void run(std::span<void *const> operands, void *memory, Stream stream) const override;
};

} // namespace par::cuda
