#include "cuda/AttentionGraph.h"

#include "par/kernels/Builtins.h"

#include <algorithm>
#include <array>

namespace par::cuda {

using dnn::Attribute;
using dnn::Kind;
using dnn::Type;

bool AttentionGraph::isBuiltin(std::string_view name) {
  return name.starts_with("attention") && kernels::findBuiltin(name);
}

/// Products of bf16 and f16 are exact in f32, also on tensor cores.
AttentionGraph::AttentionGraph(const Dnn &dnn, const GraphUse &made)
    : GraphKernel(dnn, made, {attentionWorkspace, true}), s(use.immediates),
      tensors(use.builtin.starts_with("attention_backward") ? kernels::attentionBackward : kernels::attentionForward),
      type(use.builtin.ends_with("_bf16") ? dnn::dataBF16 : dnn::dataF16), scoreDims(dims({s.b, s.h, s.sq, s.sk})),
      columnDims(dims({s.b, s.h, s.sq, 1})), scale(static_cast<float>(s.scale)) {
  use.builtin.starts_with("attention_backward") ? buildBackward() : buildForward();
  graph.finalize();
}

const DnnNode &AttentionGraph::operand(int index, int elements, Dims sizes) {
  bound.push_back({index});
  ids.push_back(++count);
  return graph.tensor({count, elements, std::move(sizes), {}, use.alignment}, "operand " + std::to_string(index));
}

const DnnNode &AttentionGraph::heads(int index, size_t tensor, bool transpose) {
  kernels::AttentionRows at = s.rows(tensor);
  kernels::AttentionSizes::Extents whole = s.extents(tensors.kinds[tensor]);
  uint64_t bytes = 2 * at.offset;
  Dims sizes = dims({s.b, whole.heads, whole.count, whole.width});
  Dims strides = dims({at.batch, at.head, at.row, 1});
  if (transpose) {
    std::swap(sizes[2], sizes[3]);
    std::swap(strides[2], strides[3]);
  }
  bound.push_back({index, bytes});
  ids.push_back(++count);
  // The largest power of two that divides both.
  int64_t aligned = bytes == 0 ? use.alignment : std::min<int64_t>(use.alignment, static_cast<int64_t>(bytes & -bytes));
  return graph.tensor({count, type, std::move(sizes), std::move(strides), aligned},
                      "operand " + std::to_string(index));
}

const DnnNode &AttentionGraph::rows(int index, size_t tensor) { return heads(index, tensor, false); }
const DnnNode &AttentionGraph::columns(int index, size_t tensor) { return heads(index, tensor, true); }

const DnnNode &AttentionGraph::number(const float &value) {
  bound.push_back({-1, 0, &value});
  ids.push_back(++count);
  return graph.tensor({count, dnn::dataF32, {1, 1, 1, 1}, {}, 16, false, true}, "a number");
}

const DnnNode &AttentionGraph::between(Dims sizes, int elements, Dims strides) {
  ++count;
  return graph.tensor({count, elements, std::move(sizes), std::move(strides), 16, true},
                      "tensor " + std::to_string(count));
}

void AttentionGraph::multiply(const DnnNode &a, const DnnNode &b, const DnnNode &c) {
  DnnNode &product = graph.node(Kind::Matmul, "a product");
  product.set(Attribute::MatmulComputeType, Type::DataType, dnn::dataF32).finalize();
  graph.operation(Kind::MatmulOperation, "a product")
      .set(Attribute::MatmulA, a)
      .set(Attribute::MatmulB, b)
      .set(Attribute::MatmulC, c)
      .set(Attribute::MatmulDescriptor, product)
      .finalize();
}

const DnnNode &AttentionGraph::pointwise(int mode, const DnnNode &x, const DnnNode *b, const DnnNode &y,
                                         const DnnNode *condition, std::optional<int64_t> axis) {
  DnnNode &elements = graph.node(Kind::Pointwise, "pointwise " + std::to_string(mode));
  bool ofIndices = mode == dnn::pointwiseAtLeast || axis;
  elements.set(Attribute::PointwiseMode, Type::PointwiseMode, mode)
      .set(Attribute::PointwiseComputeType, Type::DataType, ofIndices ? dnn::dataI32 : dnn::dataF32);
  if (axis)
    elements.set(Attribute::PointwiseAxis, *axis);
  elements.finalize();
  DnnNode &operation = graph.operation(Kind::PointwiseOperation, "pointwise " + std::to_string(mode));
  operation.set(Attribute::PointwiseDescriptor, elements).set(Attribute::PointwiseX, x);
  if (b)
    operation.set(Attribute::PointwiseB, *b);
  if (condition)
    operation.set(Attribute::PointwiseT, *condition);
  operation.set(Attribute::PointwiseY, y).finalize();
  return y;
}

const DnnNode &AttentionGraph::reduce(int mode, const DnnNode &x, const DnnNode &y) {
  DnnNode &reduction = graph.node(Kind::Reduction, "a reduction");
  reduction.set(Attribute::ReductionOperator, Type::ReductionOperator, mode)
      .set(Attribute::ReductionComputeType, Type::DataType, dnn::dataF32)
      .finalize();
  graph.operation(Kind::ReductionOperation, "a reduction")
      .set(Attribute::ReductionX, x)
      .set(Attribute::ReductionY, y)
      .set(Attribute::ReductionDescriptor, reduction)
      .finalize();
  return y;
}

const DnnNode &AttentionGraph::indices(const DnnNode &scores, int64_t axis) {
  return pointwise(dnn::pointwiseIndex, scores, nullptr, between(scoreDims, dnn::dataI32), nullptr, axis);
}

const DnnNode &AttentionGraph::transposed(const DnnNode &scores) {
  const DnnNode &result = between(dims({s.b, s.h, s.sk, s.sq}), type, dims({s.h * s.sq * s.sk, s.sq * s.sk, 1, s.sk}));
  graph.operation(Kind::ReshapeOperation, "a transpose")
      .set(Attribute::ReshapeX, scores)
      .set(Attribute::ReshapeY, result)
      .finalize();
  return result;
}

const DnnNode &AttentionGraph::scores(const DnnNode &query, const DnnNode &keyColumns, int maskOperand) {
  const DnnNode &products = between(scoreDims);
  multiply(query, keyColumns, products);
  const DnnNode *result = &pointwise(dnn::pointwiseMultiply, products, &number(scale), between(scoreDims));
  if (s.masked) {
    const DnnNode &mask = operand(maskOperand, dnn::dataF32, Dims(s.mask.begin(), s.mask.end()));
    result = &pointwise(dnn::pointwiseAdd, *result, &mask, between(scoreDims));
  }
  if (!s.causal)
    return *result;
  const DnnNode &rows = indices(*result, 2), &columns = indices(*result, 3);
  const DnnNode &meets =
      pointwise(dnn::pointwiseAtLeast, rows, &columns, between(scoreDims, dnn::dataBoolean));
  return pointwise(dnn::pointwiseSelect, *result, &number(hidden), between(scoreDims), &meets);
}

void AttentionGraph::buildForward() {
  const DnnNode &query = rows(0, 0), &keys = columns(1, 1), &values = rows(2, 2);
  const DnnNode &masked = scores(query, keys, 5);
  const DnnNode &largest = reduce(dnn::reduceMax, masked, between(columnDims));
  const DnnNode &shifted = pointwise(dnn::pointwiseSubtract, masked, &largest, between(scoreDims));
  const DnnNode &powers = pointwise(dnn::pointwiseExp, shifted, nullptr, between(scoreDims));
  const DnnNode &sum = reduce(dnn::reduceAdd, powers, between(columnDims));
  const DnnNode &logarithm = pointwise(dnn::pointwiseLog, sum, nullptr, between(columnDims));
  pointwise(dnn::pointwiseAdd, largest, &logarithm, operand(4, dnn::dataF32, columnDims));
  const DnnNode &probabilities = pointwise(dnn::pointwiseDivide, powers, &sum, between(scoreDims, type));
  multiply(probabilities, values, rows(3, 3));
}

void AttentionGraph::sumOverQueries(const DnnNode &scoreRows, const DnnNode &ofQueries, int index, size_t tensor) {
  const DnnNode &byKey = transposed(scoreRows);
  if (s.h == s.g)
    return multiply(byKey, ofQueries, rows(index, tensor));
  uint64_t width = s.extents(tensors.kinds[tensor]).width;
  const DnnNode &perHead = between(dims({s.b, s.h, s.sk, width}), type);
  multiply(byKey, ofQueries, perHead);
  reduce(dnn::reduceAdd, perHead, rows(index, tensor));
}

void AttentionGraph::buildBackward() {
  // Where dk and dv have no operands of their own, they lie in that of dq.
  const int ofDq = 6, ofDk = s.writesApart() ? 7 : ofDq, ofDv = s.writesApart() ? 8 : ofDq;
  const DnnNode &cotangent = rows(0, 0), &query = rows(1, 1), &keyColumns = columns(2, 2), &keys = rows(2, 2),
                &valueColumns = columns(3, 3), &attended = rows(4, 4), &lse = operand(5, dnn::dataF32, columnDims);

  const DnnNode &parts =
      pointwise(dnn::pointwiseMultiply, cotangent, &attended, between(dims({s.b, s.h, s.sq, s.e})));
  const DnnNode &whole = reduce(dnn::reduceAdd, parts, between(columnDims));
  const DnnNode &masked = scores(query, keyColumns, ofDv + 1);
  const DnnNode &shifted = pointwise(dnn::pointwiseSubtract, masked, &lse, between(scoreDims));
  const DnnNode &probabilities = pointwise(dnn::pointwiseExp, shifted, nullptr, between(scoreDims));
  sumOverQueries(probabilities, cotangent, ofDv, 7);

  const DnnNode &products = between(scoreDims);
  multiply(cotangent, valueColumns, products);
  const DnnNode &centred = pointwise(dnn::pointwiseSubtract, products, &whole, between(scoreDims));
  const DnnNode &unscaled = pointwise(dnn::pointwiseMultiply, centred, &probabilities, between(scoreDims));
  const DnnNode &scaled = pointwise(dnn::pointwiseMultiply, unscaled, &number(scale), between(scoreDims));
  multiply(scaled, keys, rows(ofDq, 5));
  sumOverQueries(scaled, query, ofDk, 6);
}

void AttentionGraph::run(std::span<void *const> operands, void *memory, Stream stream) const {
  std::array<void *, 16> pointers{}; // more than any of the graphs above has
  for (size_t i = 0; i < bound.size(); ++i)
    if (bound[i].number)
      pointers[i] = const_cast<float *>(bound[i].number);
    else
      pointers[i] = static_cast<std::byte *>(operands[static_cast<size_t>(bound[i].operand)]) + bound[i].bytes;
  planned->run(ids, {pointers.data(), bound.size()}, memory, stream);
}

} // namespace par::cuda
