#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Moves addressed rows; `perElement` operations combine each element of an update with the old one.
template <typename Op, int64_t perElement>
struct Addressed : CostOpInterface::ExternalModel<Addressed<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerIndexCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<GatherOp, Addressed<GatherOp, 0>>(*context);
    attachOnce<IndexAddOp, Addressed<IndexAddOp, 1>>(*context);
    attachOnce<TakeOp, Addressed<TakeOp, 0>>(*context);
    attachOnce<ScatterReduceOp, Addressed<ScatterReduceOp, 1>>(*context);
    attachOnce<ScatterAddOp, Addressed<ScatterAddOp, 1>>(*context);
  });
}

} // namespace par
