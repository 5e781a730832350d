#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Attach.h"

using namespace mlir;

namespace par {
namespace {

/// Computes nothing; an op that only renames or repeats elements has no memory traffic either.
template <typename Op, int64_t perElement>
struct Moved : CostOpInterface::ExternalModel<Moved<Op, perElement>, Op> {
  int64_t getFlops(Operation *op) const {
    return perElement * cast<RankedTensorType>(op->getResult(0).getType()).getNumElements();
  }
  bool isFusable(Operation *) const { return true; }
};

/// Writes its elements in another order or place.
template <typename Op>
struct Copied : CostOpInterface::ExternalModel<Copied<Op>, Op> {
  int64_t getFlops(Operation *) const { return 0; }
  bool isFusable(Operation *) const { return false; }
};

} // namespace

void registerShapeCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConstantOp, Moved<ConstantOp, 0>>(*context);
    attachOnce<IotaOp, Moved<IotaOp, 1>>(*context);
    attachOnce<BroadcastInDimOp, Moved<BroadcastInDimOp, 0>>(*context);
    attachOnce<ReshapeOp, Moved<ReshapeOp, 0>>(*context);
    attachOnce<SliceOp, Moved<SliceOp, 0>>(*context);
    attachOnce<DynamicSliceOp, Moved<DynamicSliceOp, 0>>(*context);
    attachOnce<PadOp, Moved<PadOp, 0>>(*context);
    attachOnce<TransposeOp, Copied<TransposeOp>>(*context);
    attachOnce<ReverseOp, Moved<ReverseOp, 0>>(*context);
    attachOnce<UpdateSliceOp, Copied<UpdateSliceOp>>(*context);
    attachOnce<ConcatOp, Copied<ConcatOp>>(*context);
  });
}

} // namespace par
