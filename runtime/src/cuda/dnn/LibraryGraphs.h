// The builtins that cuDNN computes: convolutions and attentions, each one graph.
#pragma once

#include "par/cuda/dnn/DnnGraph.h"
#include "par/cuda/driver/Kernels.h"

namespace par::cuda {

/// A call of such a builtin: all that its engine depends on, and the names for messages: kernel and ONNX node.
struct GraphUse {
  std::string builtin, kernel, node;
  std::vector<uint64_t> immediates;
  uint32_t alignment = 256; ///< what the addresses of the operands are multiples of
  /// Engines of attention's backward part that give the same bits each time keep all scores, in 16 bits: an attention
  /// with more bytes of scores is computed piece by piece, some heads at once.
  uint64_t scores = uint64_t(768) << 20;

  /// Begin of messages.
  std::string whose() const { return "kernel \"" + kernel + "\" (" + node + ")"; }
};

/// The graph of a use, with an engine once it is planned.
class GraphKernel : public LibraryKernel {
public:
  GraphKernel(const Dnn &dnn, const GraphUse &use, DnnLimits limits)
      : use(use), limits(limits), graph(dnn, use.whose()) {}

  /// The engines that cuDNN proposes here, best first, at most so many. Throws core::Failure where it has none.
  std::vector<DnnChoice> propose(size_t most) const;
  DnnChoice propose() const { return propose(1).front(); }
  /// How many engines are worth to be timed: more than one where there are several that give the same bits each time.
  virtual size_t ways() const { return 1; }
  void plan(const DnnChoice &choice) { planned.emplace(graph, choice); }
  uint64_t workspace() const override { return planned->workspace(); }

protected:
  const GraphUse use;
  const DnnLimits limits;
  DnnGraph graph;
  std::optional<DnnPlan> planned;
};

bool isGraphBuiltin(std::string_view builtin);
/// The graph of a builtin of which that is true. Throws core::Failure where cuDNN refuses it.
std::unique_ptr<GraphKernel> makeGraphKernel(const Dnn &dnn, const GraphUse &use);

} // namespace par::cuda
