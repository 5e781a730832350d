#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Statistics of a row, then one pass over it.
template <typename Op, int64_t perElement>
struct PerRow : CostOpInterface::ExternalModel<PerRow<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerNormCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SoftmaxOp, PerRow<SoftmaxOp, 16>>(*context);
    attachOnce<SoftmaxGradOp, PerRow<SoftmaxGradOp, 4>>(*context);
    attachOnce<LayerNormOp, PerRow<LayerNormOp, 8>>(*context);
    attachOnce<LayerNormGradOp, PerRow<LayerNormGradOp, 12>>(*context);
  });
}

} // namespace par
