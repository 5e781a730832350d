#include "par/Dialect/Attach.h"
#include "par/Interfaces/Cost.h"

using namespace mlir;

namespace par {
namespace {

/// Reads its operand once; a reduction ends a loop, so that what follows is another one.
template <typename Op, int64_t perElement>
struct Swept : CostOpInterface::ExternalModel<Swept<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

/// Every element meets every other along the dim.
struct SortedPositionCost : CostOpInterface::ExternalModel<SortedPositionCost, SortedPositionOp> {
  int64_t getFlops(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    return 2 * type.getNumElements() * type.getDimSize(cast<SortedPositionOp>(op).getDim());
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerReduceCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ReduceOp, Swept<ReduceOp, 1>>(*context);
    attachOnce<ArgReduceOp, Swept<ArgReduceOp, 1>>(*context);
    attachOnce<CumulativeOp, Swept<CumulativeOp, 1>>(*context);
    attachOnce<SortedPositionOp, SortedPositionCost>(*context);
  });
}

} // namespace par
