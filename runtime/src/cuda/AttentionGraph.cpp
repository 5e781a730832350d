#include "cuda/AttentionGraph.h"

#include "par/kernels/Builtins.h"

namespace par::cuda {

using dnn::Attribute;
using dnn::Kind;
using dnn::Type;

AttentionSizes::AttentionSizes(std::span<const uint64_t> imms) {
  auto at = [&](size_t i) { return static_cast<int64_t>(imms[i]); };
  b = at(0), h = at(1), g = at(2), sq = at(3), sk = at(4), d = at(5), e = at(6);
  causal = imms[7] != 0, masked = imms[8] != 0;
  scale = static_cast<float>(kernels::immediateReal(imms[9]));
  mask = {at(10), at(11), at(12), at(13)};
}

bool AttentionGraph::isBuiltin(std::string_view name) {
  return name.starts_with("attention") && kernels::findBuiltin(name);
}

AttentionGraph::AttentionGraph(const Dnn &dnn, std::string whose, std::string_view builtin,
                               std::span<const uint64_t> imms, uint32_t alignment)
    : s(imms), type(builtin.ends_with("_bf16") ? dnn::dataBF16 : dnn::dataF16), alignment(alignment),
      graph(dnn, std::move(whose)), scoreDims{s.b, s.h, s.sq, s.sk}, columnDims{s.b, s.h, s.sq, 1} {
  builtin.starts_with("attention_backward") ? buildBackward() : buildForward();
  graph.finalize();
}

const DnnNode &AttentionGraph::operand(int index, int elements, Dims dims, Dims strides) {
  bound.push_back({++tensors, index});
  return graph.tensor({tensors, elements, std::move(dims), std::move(strides), alignment},
                      "operand " + std::to_string(index));
}

const DnnNode &AttentionGraph::number(const float &value) {
  bound.push_back({++tensors, -1, &value});
  return graph.tensor({tensors, dnn::dataF32, {1, 1, 1, 1}, {}, 16, false, true}, "a number");
}

const DnnNode &AttentionGraph::between(Dims dims, int elements, Dims strides) {
  ++tensors;
  return graph.tensor({tensors, elements, std::move(dims), std::move(strides), 16, true},
                      "tensor " + std::to_string(tensors));
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
                                         const DnnNode *condition) {
  DnnNode &elements = graph.node(Kind::Pointwise, "pointwise " + std::to_string(mode));
  bool compares = mode == dnn::pointwiseAtLeast;
  elements.set(Attribute::PointwiseMode, Type::PointwiseMode, mode)
      .set(Attribute::PointwiseComputeType, Type::DataType, compares ? dnn::dataI32 : dnn::dataF32)
      .finalize();
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
  const DnnNode &result = between(scoreDims, dnn::dataI32);
  DnnNode &index = graph.node(Kind::Pointwise, "indices");
  index.set(Attribute::PointwiseMode, Type::PointwiseMode, dnn::pointwiseIndex)
      .set(Attribute::PointwiseComputeType, Type::DataType, dnn::dataI32)
      .set(Attribute::PointwiseAxis, axis)
      .finalize();
  graph.operation(Kind::PointwiseOperation, "indices")
      .set(Attribute::PointwiseDescriptor, index)
      .set(Attribute::PointwiseX, scores)
      .set(Attribute::PointwiseY, result)
      .finalize();
  return result;
}

const DnnNode &AttentionGraph::transposed(const DnnNode &scores) {
  const DnnNode &result = between({s.b, s.h, s.sk, s.sq}, type, {s.h * s.sq * s.sk, s.sq * s.sk, 1, s.sk});
  graph.operation(Kind::ReshapeOperation, "a transpose")
      .set(Attribute::ReshapeX, scores)
      .set(Attribute::ReshapeY, result)
      .finalize();
  return result;
}

const DnnNode &AttentionGraph::scores(const DnnNode &query, const DnnNode &keyColumns, int maskOperand) {
  const DnnNode &products = between(scoreDims);
  multiply(query, keyColumns, products);
  const DnnNode *result = &pointwise(dnn::pointwiseMultiply, products, &number(s.scale), between(scoreDims));
  if (s.masked) {
    const DnnNode &mask = operand(maskOperand, dnn::dataF32, {s.mask.begin(), s.mask.end()});
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
  const DnnNode &query = operand(0, type, {s.b, s.h, s.sq, s.d});
  const DnnNode &keys = operand(1, type, {s.b, s.g, s.d, s.sk}, {s.g * s.sk * s.d, s.sk * s.d, 1, s.d});
  const DnnNode &values = operand(2, type, {s.b, s.g, s.sk, s.e});
  const DnnNode &masked = scores(query, keys, 5);
  const DnnNode &largest = reduce(dnn::reduceMax, masked, between(columnDims));
  const DnnNode &shifted = pointwise(dnn::pointwiseSubtract, masked, &largest, between(scoreDims));
  const DnnNode &powers = pointwise(dnn::pointwiseExp, shifted, nullptr, between(scoreDims));
  const DnnNode &sum = reduce(dnn::reduceAdd, powers, between(columnDims));
  const DnnNode &logarithm = pointwise(dnn::pointwiseLog, sum, nullptr, between(columnDims));
  pointwise(dnn::pointwiseAdd, largest, &logarithm, operand(4, dnn::dataF32, columnDims));
  const DnnNode &probabilities = pointwise(dnn::pointwiseDivide, powers, &sum, between(scoreDims, type));
  multiply(probabilities, values, operand(3, type, {s.b, s.h, s.sq, s.e}));
}

void AttentionGraph::sumOverQueries(const DnnNode &scoreRows, const DnnNode &rows, int index, int64_t width) {
  const DnnNode &columns = transposed(scoreRows);
  if (s.h == s.g)
    return multiply(columns, rows, operand(index, type, {s.b, s.g, s.sk, width}));
  const DnnNode &perHead = between({s.b, s.h, s.sk, width}, type);
  multiply(columns, rows, perHead);
  reduce(dnn::reduceAdd, perHead, operand(index, type, {s.b, s.g, s.sk, width}));
}

void AttentionGraph::buildBackward() {
  auto columns = [&](int64_t width) { return Dims{s.g * s.sk * width, s.sk * width, 1, width}; };
  const DnnNode &cotangent = operand(0, type, {s.b, s.h, s.sq, s.e});
  const DnnNode &query = operand(1, type, {s.b, s.h, s.sq, s.d});
  const DnnNode &keyColumns = operand(2, type, {s.b, s.g, s.d, s.sk}, columns(s.d));
  const DnnNode &keys = operand(2, type, {s.b, s.g, s.sk, s.d});
  const DnnNode &valueColumns = operand(3, type, {s.b, s.g, s.e, s.sk}, columns(s.e));
  const DnnNode &attended = operand(4, type, {s.b, s.h, s.sq, s.e});
  const DnnNode &lse = operand(5, dnn::dataF32, columnDims);

  const DnnNode &parts =
      pointwise(dnn::pointwiseMultiply, cotangent, &attended, between({s.b, s.h, s.sq, s.e}));
  const DnnNode &whole = reduce(dnn::reduceAdd, parts, between(columnDims));
  const DnnNode &masked = scores(query, keyColumns, 9);
  const DnnNode &shifted = pointwise(dnn::pointwiseSubtract, masked, &lse, between(scoreDims));
  const DnnNode &probabilities = pointwise(dnn::pointwiseExp, shifted, nullptr, between(scoreDims));
  sumOverQueries(probabilities, cotangent, 8, s.e);

  const DnnNode &products = between(scoreDims);
  multiply(cotangent, valueColumns, products);
  const DnnNode &centred = pointwise(dnn::pointwiseSubtract, products, &whole, between(scoreDims));
  const DnnNode &unscaled = pointwise(dnn::pointwiseMultiply, centred, &probabilities, between(scoreDims));
  const DnnNode &scaled = pointwise(dnn::pointwiseMultiply, unscaled, &number(s.scale), between(scoreDims));
  multiply(scaled, keys, operand(6, type, {s.b, s.h, s.sq, s.d}));
  sumOverQueries(scaled, query, 7, s.d);
}

void AttentionGraph::run(std::span<void *const> operands, void *memory, Stream stream) const {
  std::vector<int64_t> ids;
  std::vector<void *> pointers;
  for (const Bound &one : bound) {
    ids.push_back(one.id);
    pointers.push_back(one.number ? const_cast<float *>(one.number)
                                  : operands[static_cast<size_t>(one.operand)]);
  }
  planned->run(ids, pointers, memory, stream);
}

} // namespace par::cuda
