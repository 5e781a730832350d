// Builds forward and backward attention as cuDNN graphs of matmuls, pointwise ops and reductions. Batches, then heads
// that share keys, are cut into pieces until the scores of one piece fit the limit.
#include "AttentionGraph.h"

#include "par/kernels/Builtins.h"

#include <algorithm>
#include <array>

namespace par::cuda {

using dnn::Attribute;
using dnn::Kind;
using dnn::Type;

bool AttentionGraph::isBuiltin(std::string_view name) {
  return name.starts_with("attention") && kernels::formInF32(name) != name && kernels::findBuiltin(name);
}

/// Products of bf16 and f16 are exact in f32, also on tensor cores.
AttentionGraph::AttentionGraph(const Dnn &dnn, const GraphUse &made)
    : GraphKernel(dnn, made, {attentionWorkspace, true}), s(use.immediates),
      tensors(use.builtin.starts_with("attention_backward") ? kernels::attentionBackward : kernels::attentionForward),
      type(use.builtin.ends_with("_bf16") ? dnn::dataBF16 : dnn::dataF16), scale(static_cast<float>(s.scale)) {
  bool backward = use.builtin.starts_with("attention_backward");
  if (backward)
    cutIntoPieces();
  scoreDims = dims({s.b, s.h, s.sq, s.sk}), columnDims = dims({s.b, s.h, s.sq, 1});
  backward ? buildBackward() : buildForward();
  graph.finalize();
}

/// By batches, then by heads that share keys: as few pieces as are small enough, or the smallest that there are.
void AttentionGraph::cutIntoPieces() {
  const uint64_t scores = 2 * s.h * s.sq * s.sk, batches = s.b, groups = s.g;
  auto next = [](uint64_t whole, uint64_t parts) {
    while (whole % ++parts)
      ;
    return parts;
  };
  while (pieces < batches && batches / pieces * scores > use.scores)
    pieces = next(batches, pieces);
  while (pieces == batches && headPieces < groups && scores / headPieces > use.scores)
    headPieces = next(groups, headPieces);
  s.b /= pieces, s.h /= headPieces, s.g /= headPieces;
}

int64_t AttentionGraph::bind(const Bound &where) {
  bound.push_back(where);
  ids.push_back(++count);
  return count;
}

const DnnNode &AttentionGraph::place(const Bound &where, int elements, Dims sizes, Dims strides) {
  uint64_t bits =
      where.bytes | use.alignment | (pieces > 1 ? where.nextBatch : 0) | (headPieces > 1 ? where.nextHeads : 0);
  return graph.tensor({bind(where), elements, std::move(sizes), std::move(strides), static_cast<int64_t>(bits & -bits)},
                      "operand " + std::to_string(where.operand));
}

const DnnNode &AttentionGraph::ofRows(int index) {
  uint64_t heads = 4 * s.h * s.sq;
  return place({index, 0, nullptr, s.b * headPieces * heads, heads}, dnn::dataF32, columnDims, {});
}

const DnnNode &AttentionGraph::mask(int index) {
  const uint64_t of[] = {s.b, s.h, s.sq, s.sk};
  Dims sizes, strides(4);
  uint64_t elements = 1;
  for (size_t dim = 4; dim-- > 0;) {
    strides[dim] = s.mask[dim] == 1 ? 0 : static_cast<int64_t>(elements);
    elements *= s.mask[dim];
  }
  uint64_t perBatch = s.mask[0] == 1 ? 0 : elements / s.mask[0] * s.b,
           perHeads = s.mask[1] == 1 ? 0 : s.mask[2] * s.mask[3] * s.h;
  for (size_t dim = 0; dim < 4; ++dim) {
    bool whole = dim >= 2 || s.mask[dim] != 1;
    sizes.push_back(static_cast<int64_t>(whole ? of[dim] : 1));
  }
  return place({index, 0, nullptr, 4 * perBatch, 4 * perHeads}, dnn::dataF32, std::move(sizes), std::move(strides));
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
  return place({index, bytes, nullptr, 2 * at.batch * s.b, 2 * at.head * whole.heads}, type, std::move(sizes),
               std::move(strides));
}

const DnnNode &AttentionGraph::rows(int index, size_t tensor) { return heads(index, tensor, false); }
const DnnNode &AttentionGraph::columns(int index, size_t tensor) { return heads(index, tensor, true); }

const DnnNode &AttentionGraph::number(const float &value) {
  return graph.tensor({bind({-1, 0, &value}), dnn::dataF32, {1, 1, 1, 1}, {}, 16, false, true}, "a number");
}

const DnnNode &AttentionGraph::sumsOfRows() {
  sums = s.b * s.h * s.sq;
  return graph.tensor({bind({}), dnn::dataF32, columnDims, {}, 16}, "sums of rows");
}

const DnnNode &AttentionGraph::between(Dims sizes, int elements, Dims strides) {
  ++count;
  return graph.tensor({count, elements, std::move(sizes), std::move(strides), 16, true},
                      "tensor " + std::to_string(count));
}

void AttentionGraph::multiply(const DnnNode &a, const DnnNode &b, const DnnNode &c) {
  DnnNode &product = graph.node(Kind::Matmul, "a matmul");
  product.set(Attribute::MatmulComputeType, Type::DataType, dnn::dataF32).finalize();
  graph.operation(Kind::MatmulOperation, "a matmul")
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

const DnnNode &AttentionGraph::turned(const DnnNode &x, const DnnNode &view) {
  graph.operation(Kind::ReshapeOperation, "a transpose")
      .set(Attribute::ReshapeX, x)
      .set(Attribute::ReshapeY, view)
      .finalize();
  return view;
}

const DnnNode &AttentionGraph::transposed(const DnnNode &scores) {
  return turned(scores, between(dims({s.b, s.h, s.sk, s.sq}), type, dims({s.h * s.sq * s.sk, s.sq * s.sk, 1, s.sk})));
}

const DnnNode &AttentionGraph::rowsOf(const DnnNode &columns, size_t tensor) {
  kernels::AttentionRows at = s.rows(tensor);
  auto [heads, rows, width] = s.extents(tensors.kinds[tensor]);
  return turned(columns, between(dims({s.b, heads, rows, width}), type, dims({at.batch, at.head, at.row, 1})));
}

const DnnNode &AttentionGraph::scores(const DnnNode &query, const DnnNode &keyColumns, int maskOperand) {
  const DnnNode &products = between(scoreDims);
  multiply(query, keyColumns, products);
  const DnnNode *result = &pointwise(dnn::pointwiseMultiply, products, &number(scale), between(scoreDims));
  if (s.masked)
    result = &pointwise(dnn::pointwiseAdd, *result, &mask(maskOperand), between(scoreDims));
  return *result;
}

const DnnNode &AttentionGraph::causal(const DnnNode &scores) {
  if (!s.causal)
    return scores;
  const DnnNode &rows = indices(scores, 2), &columns = indices(scores, 3);
  const DnnNode &meets = pointwise(dnn::pointwiseAtLeast, rows, &columns, between(scoreDims, dnn::dataBoolean));
  return pointwise(dnn::pointwiseSelect, scores, &number(hidden), between(scoreDims), &meets);
}

void AttentionGraph::buildForward() {
  const DnnNode &query = rows(0, 0), &keys = columns(1, 1), &values = rows(2, 2);
  const DnnNode &masked = causal(scores(query, keys, int(s.maskOperand())));
  const DnnNode &largest = reduce(dnn::reduceMax, masked, between(columnDims));
  const DnnNode &shifted = pointwise(dnn::pointwiseSubtract, masked, &largest, between(scoreDims));
  const DnnNode &powers = pointwise(dnn::pointwiseExp, shifted, nullptr, between(scoreDims));
  const DnnNode &sum = reduce(dnn::reduceAdd, powers, between(columnDims));
  const DnnNode &logarithm = pointwise(dnn::pointwiseLog, sum, nullptr, between(columnDims));
  pointwise(dnn::pointwiseAdd, largest, &logarithm, ofRows(4));
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
  const int ofDq = int(s.operandOf(5)), ofDk = int(s.operandOf(6)), ofDv = int(s.operandOf(7));
  const DnnNode &cotangent = rows(0, 0), &query = rows(1, 1), &keyColumns = columns(2, 2),
                &valueColumns = columns(3, 3), &attended = rows(4, 4), &lse = ofRows(5);

  const DnnNode &parts = pointwise(dnn::pointwiseMultiply, cotangent, &attended, between(dims({s.b, s.h, s.sq, s.e})));
  // The engines know the graph with a factor here (where nothing is dropped, 1) and with its result in memory.
  const DnnNode &added = reduce(dnn::reduceAdd, parts, between(columnDims));
  const DnnNode &whole = pointwise(dnn::pointwiseMultiply, added, &number(one), sumsOfRows());
  const DnnNode &masked = scores(query, keyColumns, int(s.maskOperand()));
  const DnnNode &shifted = pointwise(dnn::pointwiseSubtract, masked, &lse, between(scoreDims));
  const DnnNode &probabilities = pointwise(dnn::pointwiseExp, causal(shifted), nullptr, between(scoreDims));
  sumOverQueries(probabilities, cotangent, ofDv, 7);

  const DnnNode &products = between(scoreDims);
  multiply(cotangent, valueColumns, products);
  const DnnNode &centred = pointwise(dnn::pointwiseSubtract, products, &whole, between(scoreDims));
  const DnnNode &unscaled = pointwise(dnn::pointwiseMultiply, centred, &probabilities, between(scoreDims));
  const DnnNode &scaled = pointwise(dnn::pointwiseMultiply, unscaled, &number(scale), between(scoreDims));
  sumOverQueries(scaled, query, ofDk, 6);
  multiply(scaled, rowsOf(keyColumns, 2), rows(ofDq, 5));
}

void AttentionGraph::run(std::span<void *const> operands, void *memory, Stream stream) const {
  std::array<void *, 16> pointers{}; // more than any of the graphs above has
  for (uint64_t piece = 0; piece < pieces * headPieces; ++piece) {
    for (size_t i = 0; i < bound.size(); ++i) {
      const Bound &at = bound[i];
      uint64_t bytes = at.bytes + piece / headPieces * at.nextBatch + piece % headPieces * at.nextHeads;
      if (at.number)
        pointers[i] = const_cast<float *>(at.number);
      else if (at.operand < 0)
        pointers[i] = static_cast<std::byte *>(memory) + behindPlan();
      else
        pointers[i] = static_cast<std::byte *>(operands[static_cast<size_t>(at.operand)]) + bytes;
    }
    planned->run(ids, {pointers.data(), bound.size()}, memory, stream);
  }
}

} // namespace par::cuda
