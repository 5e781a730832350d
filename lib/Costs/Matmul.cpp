// Products, attention and convolutions: the larger of the operations' time and the bytes' time.
#include "Rates.h"
#include "par/Costs/CostTable.h"

using namespace par;

Cost CostTable::matmul(const MatmulShape &shape) const { return local(shape.flops(), shape.bytes(), shape.type); }

Cost CostTable::attention(const AttentionShape &shape, int64_t bytes) const {
  return local(shape.flops(), bytes, shape.type);
}

Cost CostTable::attentionInMemory(const AttentionShape &shape) const {
  MatmulShape product;
  product.type = product.result = shape.type;
  product.batch = shape.batch * shape.heads;
  product.m = shape.queries;
  // Forward q k^T and p v; backward p^T ct, ct v^T, t k, t^T q, and q k^T only where scores were not kept.
  int64_t scores = product.batch * shape.queries * shape.keys * int64_t(sizeOf(shape.type));
  auto toScores = product, toValues = product;
  toScores.n = shape.keys;
  toScores.k = shape.dim;
  toValues.n = shape.valueDim;
  toValues.k = shape.keys;
  int64_t passes = shape.backward ? 2 : 1;
  // The softmax reads and writes the scores once, its gradient reads two tensors and writes one.
  Cost softmax = kernel((1 + passes) * scores, 0);
  return {passes * (matmul(toScores).ns + matmul(toValues).ns) + softmax.ns};
}

Cost CostTable::convolution(const ConvolutionShape &shape, int64_t bytes) const {
  return local(shape.flops(), bytes, shape.type);
}

Cost CostTable::local(int64_t flops, int64_t bytes, format::DType type) const {
  return {machine.launch + std::max(nanoseconds(flops, machine.peak(type)), nanoseconds(bytes, machine.memory))};
}
