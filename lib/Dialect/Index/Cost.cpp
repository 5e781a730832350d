#include "par/Interfaces/Cost.h"

using namespace mlir;

namespace par {
namespace {

/// Moves rows that values address.
template <typename Op, int64_t perElement>
struct Addressed : CostOpInterface::ExternalModel<Addressed<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getResult(0).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerIndexCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    GatherOp::attachInterface<Addressed<GatherOp, 0>>(*context);
    ScatterAddOp::attachInterface<Addressed<ScatterAddOp, 1>>(*context);
    TakeOp::attachInterface<Addressed<TakeOp, 0>>(*context);
    PutReduceOp::attachInterface<Addressed<PutReduceOp, 1>>(*context);
    PutAddOp::attachInterface<Addressed<PutAddOp, 1>>(*context);
  });
}

} // namespace par
