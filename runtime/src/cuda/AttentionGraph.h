// Attention as a graph of cuDNN: the products, the softmax and the masks that its engines know as one kernel.
#pragma once

#include "par/cuda/DnnGraph.h"
#include "par/cuda/Kernels.h"
#include "par/kernels/AttentionSizes.h"

#include <initializer_list>
#include <limits>
#include <vector>

namespace par::cuda {

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
  static Dims dims(std::initializer_list<uint64_t> sizes) { return {sizes.begin(), sizes.end()}; }
  /// What stands for a tensor that is not virtual: an operand, or a number.
  struct Bound {
    int operand = -1;
    uint64_t bytes = 0; ///< from the operand's begin
    const float *number = nullptr;
  };

  void buildForward();
  void buildBackward();
  /// All of operand `index`.
  const DnnNode &operand(int index, int type, Dims dims);
  /// The rows of tensor `tensor` (AttentionSizes::rows) in operand `index`.
  const DnnNode &rows(int index, size_t tensor);
  /// The same with elements of a row below one another.
  const DnnNode &columns(int index, size_t tensor);
  const DnnNode &heads(int index, size_t tensor, bool transpose);
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
  /// Sums of rows of the queries for each key into a tensor's operand; heads that share keys are added up.
  void sumOverQueries(const DnnNode &scoreRows, const DnnNode &rows, int index, size_t tensor);

  std::vector<uint64_t> immediates;
  kernels::AttentionSizes s;
  kernels::AttentionTensors tensors;
  int type;
  uint32_t alignment;
  DnnGraph graph;
  std::vector<Bound> bound;
  std::vector<int64_t> ids; ///< of `bound`
  int64_t count = 0;        ///< of tensors of the graph
  Dims scoreDims, columnDims;
  const float hidden = std::numeric_limits<float>::lowest();
  float scale;
  std::optional<DnnPlan> planned;
};

} // namespace par::cuda
