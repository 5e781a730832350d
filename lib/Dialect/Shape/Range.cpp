#include "../RangeModel.h"

using namespace mlir;

namespace par {
namespace {

/// Elements of some operands in other places.
template <typename Op>
struct MovedRange : RangeModel<MovedRange<Op>, Op> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    size_t moved = isa<DynamicSliceOp>(op) ? 1 : isa<UpdateSliceOp>(op) ? 2 : operands.size(); // the start is none
    if (moved == 0 || !isa<IntegerType>(getElementTypeOrSelf(op->getResult(0))))
      return;
    ConstantIntRanges all = operands[0];
    for (const ConstantIntRanges &operand : operands.slice(1, moved - 1))
      all = all.rangeUnion(operand);
    if (auto pad = dyn_cast<PadOp>(op))
      all = all.rangeUnion(ConstantIntRanges::constant(cast<IntegerAttr>(pad.getValue()).getValue()));
    set(op->getResult(0), all);
  }
};

struct IotaRange : RangeModel<IotaRange, IotaOp> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges>, SetIntRangeFn set) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto element = dyn_cast<IntegerType>(type.getElementType());
    int64_t last = type.getDimSize(cast<IotaOp>(op).getDim()) - 1;
    if (element && last >= 0 && (element.getWidth() >= 64 || last < int64_t(1) << (element.getWidth() - 1)))
      set(op->getResult(0),
          ConstantIntRanges::fromSigned(APInt(element.getWidth(), 0), APInt(element.getWidth(), uint64_t(last))));
  }
};

/// Large tables of different numbers are not looked at.
struct ConstantRange : RangeModel<ConstantRange, ConstantOp> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges>, SetIntRangeFn set) const {
    constexpr int64_t maxElements = 1 << 16;
    auto numbers = dyn_cast<DenseIntElementsAttr>(cast<ConstantOp>(op).getValue());
    if (!numbers || numbers.empty() || (!numbers.isSplat() && numbers.size() > maxElements))
      return;
    ConstantIntRanges all = ConstantIntRanges::constant(*numbers.value_begin<APInt>());
    if (!numbers.isSplat())
      for (const APInt &number : numbers.getValues<APInt>())
        all = all.rangeUnion(ConstantIntRanges::constant(number));
    set(op->getResult(0), all);
  }
};

template <typename... Ops>
void attachMovedRanges(MLIRContext *context) {
  (attachOnce<Ops, MovedRange<Ops>>(*context), ...);
}

} // namespace

void registerShapeRanges(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachMovedRanges<BroadcastInDimOp, ReshapeOp, TransposeOp, SliceOp, ReverseOp, DynamicSliceOp, UpdateSliceOp,
                      PadOp, ConcatOp>(context);
    attachOnce<IotaOp, IotaRange>(*context);
    attachOnce<ConstantOp, ConstantRange>(*context);
  });
}

} // namespace par
