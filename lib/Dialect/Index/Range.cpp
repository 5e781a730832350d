#include "../RangeModel.h"

using namespace mlir;

namespace par {
namespace {

/// Elements of the first operand.
template <typename Op>
struct PickedRange : RangeModel<PickedRange<Op>, Op> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    if (isa<IntegerType>(getElementTypeOrSelf(op->getResult(0))))
      set(op->getResult(0), operands[0]);
  }
};

/// An element gets at most one update if there is only one update along the dim, or if the indices are a permutation
/// (the positions of a sort, for a top-k). Other sums have no known range.
struct ScatterAddRange : RangeModel<ScatterAddRange, ScatterAddOp> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    auto put = cast<ScatterAddOp>(op);
    if (!isa<IntegerType>(getElementTypeOrSelf(put.getUpdates())))
      return;
    auto positions = put.getIndices().getDefiningOp<SortedPositionOp>();
    if (positions && positions.getDim() == put.getDim())
      set(op->getResult(0), operands[0]);
    else if (cast<RankedTensorType>(put.getIndices().getType()).getDimSize(put.getDim()) == 1)
      set(op->getResult(0),
          operands[0].rangeUnion(ConstantIntRanges::constant(APInt::getZero(operands[0].smin().getBitWidth()))));
  }
};

} // namespace

void registerIndexRanges(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<GatherOp, PickedRange<GatherOp>>(*context);
    attachOnce<TakeOp, PickedRange<TakeOp>>(*context);
    attachOnce<ScatterAddOp, ScatterAddRange>(*context);
  });
}

} // namespace par
