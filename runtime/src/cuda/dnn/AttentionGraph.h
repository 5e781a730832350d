// Attention as a graph of cuDNN: the matmuls, the softmax and the masks that its engines know as one kernel.
#pragma once

#include "LibraryGraphs.h"
#include "par/kernels/AttentionSizes.h"

#include <initializer_list>
#include <limits>
#include <vector>

namespace par::cuda {

/// Bytes of workspace that an attention may want; each queue has one of the largest of an entry.
inline constexpr uint64_t attentionWorkspace = uint64_t(4) << 30;

/// One call of an attention builtin: attention_bf16, attention_f16, attention_backward_bf16, attention_backward_f16.
class AttentionGraph final : public GraphKernel {
public:
  AttentionGraph(const Dnn &dnn, const GraphUse &use);
  static bool isBuiltin(std::string_view builtin);

  void run(std::span<void *const> operands, void *memory, Stream stream) const override;
  uint64_t workspace() const override { return behindPlan() + 4 * sums; }

private:
  using Dims = std::vector<int64_t>;
  static Dims dims(std::initializer_list<uint64_t> sizes) { return {sizes.begin(), sizes.end()}; }
  /// Binding of a tensor that is not virtual: an operand, a number, or memory after the plan's.
  struct Bound {
    int operand = -1;
    uint64_t bytes = 0; ///< from the operand's begin
    const float *number = nullptr;
    uint64_t nextBatch = 0, nextHeads = 0; ///< bytes from one piece to the next
  };
  /// Bytes of workspace before `sums`.
  uint64_t behindPlan() const { return (planned->workspace() + 255) / 256 * 256; }

  void cutIntoPieces();
  /// The id of a tensor that stands there.
  int64_t bind(const Bound &where);
  /// A tensor that stands in an operand; it is as aligned as the operand and all of its pieces are.
  const DnnNode &place(const Bound &where, int type, Dims sizes, Dims strides);
  void buildForward();
  void buildBackward();
  /// Numbers in f32 in operand `index`, for each row of the queries.
  const DnnNode &ofRows(int index);
  /// The mask in operand `index`. A mask only of keys has a stride of 0 along queries: with a dim of 1 there, cuDNN
  /// 9.14 computes another gradient.
  const DnnNode &mask(int index);
  /// The rows of tensor `tensor` (AttentionSizes::rows) in operand `index`.
  const DnnNode &rows(int index, size_t tensor);
  /// The same, transposed.
  const DnnNode &columns(int index, size_t tensor);
  const DnnNode &heads(int index, size_t tensor, bool transpose);
  const DnnNode &number(const float &value);
  /// A number for each row of the queries, which the engines keep between two kernels of theirs and want memory for.
  const DnnNode &sumsOfRows();
  /// Between operations.
  const DnnNode &between(Dims dims, int type = dnn::dataF32, Dims strides = {});
  void multiply(const DnnNode &a, const DnnNode &b, const DnnNode &c);
  const DnnNode &pointwise(int mode, const DnnNode &x, const DnnNode *b, const DnnNode &y,
                           const DnnNode *condition = nullptr, std::optional<int64_t> axis = {});
  const DnnNode &reduce(int mode, const DnnNode &x, const DnnNode &y);
  /// Which row or column of the scores, for each.
  const DnnNode &indices(const DnnNode &scores, int64_t axis);
  /// The rows of queries as columns.
  const DnnNode &transposed(const DnnNode &scores);
  /// The rows of a tensor that is there by columns.
  const DnnNode &rowsOf(const DnnNode &columns, size_t tensor);
  /// `x` as `view` has it: its last two dims are the other way round.
  const DnnNode &turned(const DnnNode &x, const DnnNode &view);
  /// scale q k^T, with the mask added.
  const DnnNode &scores(const DnnNode &query, const DnnNode &keyColumns, int maskOperand);
  /// Hides the keys after a query if the attention is causal.
  const DnnNode &causal(const DnnNode &scores);
  /// Sums of rows of the queries for each key into a tensor's operand; heads that share keys are added up.
  void sumOverQueries(const DnnNode &scoreRows, const DnnNode &rows, int index, size_t tensor);

  kernels::AttentionSizes s;           ///< of a piece
  uint64_t pieces = 1, headPieces = 1; ///< of the batches; of the heads of each, where a piece is of one batch
  kernels::AttentionTensors tensors;
  int type;
  std::vector<Bound> bound;
  std::vector<int64_t> ids; ///< of `bound`
  int64_t count = 0;        ///< of tensors of the graph
  uint64_t sums = 0;        ///< f32 numbers of sumsOfRows
  Dims scoreDims, columnDims;
  const float hidden = std::numeric_limits<float>::lowest(), one = 1;
  float scale;
};

} // namespace par::cuda
