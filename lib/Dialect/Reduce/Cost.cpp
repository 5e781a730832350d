#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Reads its operand once; a reduction ends a loop, so that its users are in another one.
template <typename Op, int64_t perElement>
struct Swept : CostOpInterface::ExternalModel<Swept<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return false; }
};

/// Cost of the cheaper of two algorithms: a sort along the dim, whose steps wait for each other, or a vectorised
/// comparison of every pair. Counted in FLOP of matmuls, which run at peak speed.
struct SortedPositionCost : CostOpInterface::ExternalModel<SortedPositionCost, SortedPositionOp> {
  int64_t getFlops(Operation *op) const {
    constexpr int64_t ofStep = 1024, ofMeeting = 32;
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    int64_t size = type.getDimSize(cast<SortedPositionOp>(op).getDim());
    return type.getNumElements() *
           std::min(ofStep * 2 * int64_t(llvm::Log2_64_Ceil(std::max<int64_t>(size, 2))), ofMeeting * size);
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
