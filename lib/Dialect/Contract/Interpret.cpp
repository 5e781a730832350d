#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Interpretable.h"

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

/// `source` with dims in the order `first`, `second`, `third`.
Tensor reorder(const Tensor &source, ArrayRef<int64_t> first, ArrayRef<int64_t> second, ArrayRef<int64_t> third) {
  SmallVector<int64_t> from = getStrides(source.getShape()), strides, shape;
  for (ArrayRef<int64_t> dims : {first, second, third})
    for (int64_t dim : dims) {
      strides.push_back(from[dim]);
      shape.push_back(source.getShape()[dim]);
    }
  return pick(source, source.getType().clone(shape), strides);
}

int64_t product(const Tensor &source, ArrayRef<int64_t> dims) {
  int64_t size = 1;
  for (int64_t dim : dims)
    size *= source.getShape()[dim];
  return size;
}

/// C[m, n] += A[m, k] B[k, n], rows of B streamed.
void multiply(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      double x = a[i * k + p];
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] += x * b[p * n + j];
    }
}

/// Integers are multiplied as doubles would lose: they go through their own loop.
struct DotInterpreter : InterpretableOpInterface::ExternalModel<DotInterpreter, DotOp> {
  FailureOr<SmallVector<Tensor>> interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto dot = cast<DotOp>(op);
    Tensor lhs = reorder(operands[0], dot.getLhsBatching(), dot.getLhsFree(), dot.getLhsContracting());
    Tensor rhs = reorder(operands[1], dot.getRhsBatching(), dot.getRhsContracting(), dot.getRhsFree());
    int64_t batch = product(operands[0], dot.getLhsBatching()), m = product(operands[0], dot.getLhsFree()),
            k = product(operands[0], dot.getLhsContracting()), n = product(operands[1], dot.getRhsFree());
    Tensor result(cast<RankedTensorType>(dot.getType()));
    for (int64_t b = 0; b < batch; ++b) {
      if (result.isFloat()) {
        multiply(lhs.floats().data() + b * m * k, rhs.floats().data() + b * k * n,
                 result.mutableFloats().data() + b * m * n, m, n, k);
        continue;
      }
      auto to = result.mutableInts();
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t p = 0; p < k; ++p)
            to[(b * m + i) * n + j] += lhs.ints()[(b * m + i) * k + p] * rhs.ints()[(b * k + p) * n + j];
    }
    return SmallVector<Tensor>{result};
  }
};

} // namespace

void registerContractInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) { attachOnce<DotOp, DotInterpreter>(*context); });
}

} // namespace par
