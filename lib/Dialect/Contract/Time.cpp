#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Timed.h"

using namespace mlir;

namespace par {
static int64_t productOf(RankedTensorType type, ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    product *= type.getDimSize(dim);
  return product;
}

/// Whether the minor dim of an operand is one of these.
static bool endsWith(RankedTensorType type, ArrayRef<int64_t> dims) {
  return llvm::is_contained(dims, type.getRank() - 1);
}

MatmulShape shapeOf(DotOp dot) {
  RankedTensorType lhs = getTensorType(dot.getLhs().getType()), rhs = getTensorType(dot.getRhs().getType());
  MatmulShape shape{formatOf(lhs), formatOf(dot.getType())};
  shape.batch = productOf(lhs, dot.getLhsBatching());
  shape.m = productOf(lhs, dot.getLhsFree());
  shape.n = productOf(rhs, dot.getRhsFree());
  shape.k = productOf(lhs, dot.getLhsContracting());
  shape.transposeA = !endsWith(lhs, dot.getLhsContracting());
  shape.transposeB = endsWith(rhs, dot.getRhsContracting());
  return shape;
}

namespace {
struct DotTime : TimedOpInterface::ExternalModel<DotTime, DotOp> {
  Cost getTime(Operation *op, const CostTable &costs) const { return costs.matmul(shapeOf(cast<DotOp>(op))); }
};
} // namespace

void registerContractTimes(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) { attachOnce<DotOp, DotTime>(*context); });
}

} // namespace par
