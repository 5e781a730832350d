#include "par/Dialect/Interfaces/Cost.h"
#include "NewtonSchulz.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// One pass over parameter, gradient and state, or over only those rows that the gradient has.
template <typename Op, int64_t perElement>
struct PerParameter : CostOpInterface::ExternalModel<PerParameter<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getOperand(1).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

/// Each step has three matmuls, whose inner sizes are those of the shorter side.
struct MuonCost : CostOpInterface::ExternalModel<MuonCost, MuonOp> {
  int64_t getFlops(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getOperand(1).getType());
    int64_t small = std::min(type.getDimSize(0), type.getDimSize(1)), elements = type.getNumElements();
    return muon::steps * (4 * elements * small + 2 * small * small * small) + 16 * elements;
  }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerOptimizerCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, PerParameter<SgdOp, 4>>(*context);
    attachOnce<MomentumOp, PerParameter<MomentumOp, 6>>(*context);
    attachOnce<AdamwOp, PerParameter<AdamwOp, 16>>(*context);
    attachOnce<LionOp, PerParameter<LionOp, 8>>(*context);
    attachOnce<MuonOp, MuonCost>(*context);
  });
}

} // namespace par
