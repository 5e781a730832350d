#include "par/Interfaces/Cost.h"

using namespace mlir;

namespace par {
namespace {

/// Computes nothing; where it only renames or repeats elements it costs no memory traffic either.
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
    ConstantOp::attachInterface<Moved<ConstantOp, 0>>(*context);
    IotaOp::attachInterface<Moved<IotaOp, 1>>(*context);
    BroadcastInDimOp::attachInterface<Moved<BroadcastInDimOp, 0>>(*context);
    ReshapeOp::attachInterface<Moved<ReshapeOp, 0>>(*context);
    SliceOp::attachInterface<Moved<SliceOp, 0>>(*context);
    DynamicSliceOp::attachInterface<Moved<DynamicSliceOp, 0>>(*context);
    PadOp::attachInterface<Moved<PadOp, 0>>(*context);
    TransposeOp::attachInterface<Copied<TransposeOp>>(*context);
    ReverseOp::attachInterface<Moved<ReverseOp, 0>>(*context);
    UpdateSliceOp::attachInterface<Copied<UpdateSliceOp>>(*context);
    ConcatOp::attachInterface<Copied<ConcatOp>>(*context);
  });
}

} // namespace par
