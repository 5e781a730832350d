#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Exponentials over the classes: a maximum, a sum of e^x, a logarithm.
template <typename Op, int64_t perElement>
struct PerLogit : CostOpInterface::ExternalModel<PerLogit<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(cast<Op>(op).getLogits().getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerLossCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<CrossEntropyOp, PerLogit<CrossEntropyOp, 14>>(*context);
    attachOnce<CrossEntropyGradOp, PerLogit<CrossEntropyGradOp, 14>>(*context);
  });
}

} // namespace par
