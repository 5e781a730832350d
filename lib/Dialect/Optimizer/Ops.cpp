#include "../TensorTypes.h"
#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

/// The gradient has a row for each of those that it is of, else the weight's shape.
template <typename Op>
static LogicalResult verifyUpdate(Op op) {
  ArrayRef<int64_t> weight = shapeOf(op.getWeight()), gradient = shapeOf(op.getGradient());
  SmallVector<int64_t> expected(weight);
  if (Value rows = op.getRows()) {
    if (weight.empty() || shapeOf(rows).size() != 1)
      return op.emitOpError() << "takes rows " << rows.getType() << " of " << op.getWeight().getType()
                              << ", expected one dim of them and a weight with rows";
    expected.front() = shapeOf(rows).front();
  }
  if (gradient != ArrayRef(expected))
    return op.emitOpError() << "takes the gradient " << op.getGradient().getType() << " of " << op.getWeight().getType()
                            << ", expected " << typeOf(op.getGradient()).clone(expected);
  return success();
}

LogicalResult SgdOp::verify() { return verifyUpdate(*this); }
LogicalResult MomentumOp::verify() { return verifyUpdate(*this); }
LogicalResult AdamwOp::verify() { return verifyUpdate(*this); }
LogicalResult LionOp::verify() { return verifyUpdate(*this); }

LogicalResult MuonOp::verify() {
  if (shapeOf(getWeight()).size() != 2)
    return emitOpError() << "updates matrices, and the weight is " << getWeight().getType();
  if (getRows())
    return emitOpError() << "updates whole matrices, no rows of them";
  return verifyUpdate(*this);
}

LogicalResult GradientOp::verify() {
  if (!getRows())
    return success();
  ArrayRef<int64_t> gradient = shapeOf(getOperand());
  if (gradient.empty() || shapeOf(getRows()) != gradient.take_front())
    return emitOpError() << "of " << getOperand().getType() << " is of rows " << getRows().getType()
                         << ", expected one for each";
  return success();
}

LogicalResult CollectOp::verify() {
  int64_t dims = getDims(), rank = shapeOf(getOperand()).size();
  if (dims < 0 || dims > rank)
    return emitOpError() << "collects " << dims << " dims of " << getOperand().getType();
  return success();
}

} // namespace par
