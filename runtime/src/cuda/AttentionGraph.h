// Attention as a graph of cuDNN: the products, the softmax and the masks that its engines know as one kernel.
#pragma once

#include "par/cuda/DnnGraph.h"
#include "par/cuda/Kernels.h"

#include <array>
#include <limits>

namespace par::cuda {

/// The builtin's immediates (par/kernels/Builtins.h), by name.
struct AttentionSizes {
  explicit AttentionSizes(std::span<const uint64_t> imms);
  int64_t b, h, g, sq, sk, d, e;
  bool causal, masked;
  float scale;
  std::array<int64_t, 4> mask;
};

/// One call of an attention builtin.
class AttentionGraph final : public LibraryKernel {
public:
  /// `builtin`: one of attention_bf16, attention_f16, attention_backward_bf16, attention_backward_f16;
  /// `alignment`: what the operands' addresses are multiples of.
  AttentionGraph(const Dnn &dnn, std::string whose, std::string_view builtin, std::span<const uint64_t> imms,
                 uint32_t alignment);
  static bool isBuiltin(std::string_view name);

  const DnnGraph &getGraph() const { return graph; }
  void plan(const DnnChoice &choice) { planned.emplace(graph, choice); }
  uint64_t workspace() const override { return planned->workspace(); }
  void run(std::span<void *const> operands, void *memory, Stream stream) const override;

private:
  using Dims = std::vector<int64_t>;
  /// What stands for a tensor that is not virtual: an operand, or a number.
  struct Bound {
    int64_t id;
    int operand = -1;
    const float *number = nullptr;
  };

  void buildForward();
  void buildBackward();
  const DnnNode &operand(int index, int type, Dims dims, Dims strides = {});
  const DnnNode &number(const float &value);
  /// Between operations.
  const DnnNode &between(Dims dims, int type = dnn::dataF32, Dims strides = {});
  void multiply(const DnnNode &a, const DnnNode &b, const DnnNode &c);
  const DnnNode &pointwise(int mode, const DnnNode &x, const DnnNode *b, const DnnNode &y,
                           const DnnNode *condition = nullptr);
  const DnnNode &reduce(int mode, const DnnNode &x, const DnnNode &y);
  /// Which row or column of the scores, for each.
  const DnnNode &indices(const DnnNode &scores, int64_t axis);
  /// The rows of queries as columns.
  const DnnNode &transposed(const DnnNode &scores);
  /// scale q k^T, masked.
  const DnnNode &scores(const DnnNode &query, const DnnNode &keyColumns, int maskOperand);
  /// Sums of rows of the queries for each key into an operand; heads that share keys are added up.
  void sumOverQueries(const DnnNode &scoreRows, const DnnNode &rows, int index, int64_t width);

  AttentionSizes s;
  int type;
  int64_t alignment;
  DnnGraph graph;
  std::vector<Bound> bound;
  int64_t tensors = 0;
  Dims scoreDims, columnDims;
  const float hidden = std::numeric_limits<float>::lowest();
  std::optional<DnnPlan> planned;
};

} // namespace par::cuda
