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

} // namespace

void registerReduceCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    ReduceOp::attachInterface<Swept<ReduceOp, 1>>(*context);
    ArgReduceOp::attachInterface<Swept<ArgReduceOp, 1>>(*context);
    CumulativeOp::attachInterface<Swept<CumulativeOp, 1>>(*context);
  });
}

} // namespace par
