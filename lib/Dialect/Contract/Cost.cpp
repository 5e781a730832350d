#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// One multiplication and one addition for each element of the iteration space; not fusable: a library call of its own.
struct DotCost : CostOpInterface::ExternalModel<DotCost, DotOp> {
  int64_t getFlops(Operation *op) const {
    auto dot = cast<DotOp>(op);
    int64_t contracted = 1;
    for (int64_t dim : dot.getLhsContracting())
      contracted *= dot.getLhs().getType().getDimSize(dim);
    return 2 * contracted * dot.getResult().getType().getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerContractCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) { attachOnce<DotOp, DotCost>(*context); });
}

} // namespace par
