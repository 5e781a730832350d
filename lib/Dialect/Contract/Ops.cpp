#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

/// The dims below `rank` that neither list names.
static SmallVector<int64_t> freeDims(int64_t rank, ArrayRef<int64_t> contracting, ArrayRef<int64_t> batching) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(contracting, dim) && !llvm::is_contained(batching, dim))
      dims.push_back(dim);
  return dims;
}

SmallVector<int64_t> DotOp::getLhsFree() {
  return freeDims(getLhs().getType().getRank(), getLhsContracting(), getLhsBatching());
}
SmallVector<int64_t> DotOp::getRhsFree() {
  return freeDims(getRhs().getType().getRank(), getRhsContracting(), getRhsBatching());
}

SmallVector<int64_t> DotOp::inferShape(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs, ArrayRef<int64_t> lhsContracting,
                                       ArrayRef<int64_t> rhsContracting, ArrayRef<int64_t> lhsBatching,
                                       ArrayRef<int64_t> rhsBatching) {
  SmallVector<int64_t> shape;
  for (int64_t dim : lhsBatching)
    shape.push_back(lhs[dim]);
  for (int64_t dim : freeDims(lhs.size(), lhsContracting, lhsBatching))
    shape.push_back(lhs[dim]);
  for (int64_t dim : freeDims(rhs.size(), rhsContracting, rhsBatching))
    shape.push_back(rhs[dim]);
  return shape;
}

/// Both lists name different dims, pairwise of one size.
static LogicalResult verifyPairs(DotOp op, ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs, StringRef what) {
  if (lhs.size() != rhs.size())
    return op.emitOpError() << "has " << lhs.size() << " and " << rhs.size() << " " << what << " dims";
  for (auto [left, right] : llvm::zip(lhs, rhs)) {
    if (left < 0 || left >= op.getLhs().getType().getRank() || right < 0 || right >= op.getRhs().getType().getRank())
      return op.emitOpError() << what << " dims " << left << " x " << right << " are not within the operands";
    int64_t leftSize = op.getLhs().getType().getDimSize(left), rightSize = op.getRhs().getType().getDimSize(right);
    if (leftSize != rightSize)
      return op.emitOpError() << what << " dims " << left << " x " << right << " have sizes " << leftSize << " and "
                              << rightSize;
  }
  return success();
}

LogicalResult DotOp::verify() {
  if (failed(verifyPairs(*this, getLhsContracting(), getRhsContracting(), "contracting")) ||
      failed(verifyPairs(*this, getLhsBatching(), getRhsBatching(), "batching")))
    return failure();
  SmallVector<int64_t> expected =
      inferShape(getLhs().getType().getShape(), getRhs().getType().getShape(), getLhsContracting(), getRhsContracting(),
                 getLhsBatching(), getRhsBatching());
  if (getType().getShape() != ArrayRef<int64_t>(expected))
    return emitOpError() << "result is " << getType() << ", expected the shape " << getType().clone(expected);
  return success();
}

} // namespace par
