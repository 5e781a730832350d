#include "../RangeModel.h"

#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"

using namespace mlir;

namespace par {
namespace {

/// [0, size of the dim).
template <typename Op>
struct PlaceRange : RangeModel<PlaceRange<Op>, Op> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges>, SetIntRangeFn set) const {
    int64_t size = cast<RankedTensorType>(op->getOperand(0).getType()).getDimSize(cast<Op>(op).getDim());
    unsigned width = getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth();
    if (size > 0)
      set(op->getResult(0), ConstantIntRanges::fromSigned(APInt(width, 0), APInt(width, uint64_t(size - 1))));
  }
};

/// Range of a sum of 0 to `most` elements of range `each`; nothing for other kinds, or if it may overflow.
std::optional<ConstantIntRanges> combinedRange(ReduceKind kind, const ConstantIntRanges &each, int64_t most) {
  unsigned width = each.smin().getBitWidth();
  APInt zero = APInt::getZero(width);
  if (kind != ReduceKind::sum || width < 2 || (width < 64 && most >= int64_t(1) << (width - 1)))
    return std::nullopt;
  ConstantIntRanges count = ConstantIntRanges::fromSigned(zero, APInt(width, uint64_t(most)));
  return intrange::inferMul({each, count});
}

struct ReduceRange : RangeModel<ReduceRange, ReduceOp> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    auto reduce = cast<ReduceOp>(op);
    auto type = cast<RankedTensorType>(reduce.getOperand().getType());
    int64_t most = 1;
    for (int64_t dim : reduce.getDims())
      most *= type.getDimSize(dim);
    bool picks = reduce.getKind() == ReduceKind::max || reduce.getKind() == ReduceKind::min;
    if (!isa<IntegerType>(type.getElementType()) || type.getElementType().isInteger(1))
      return;
    if (picks && most > 0)
      set(op->getResult(0), operands[0]);
    else if (auto range = combinedRange(reduce.getKind(), operands[0], most))
      set(op->getResult(0), *range);
  }
};

struct CumulativeRange : RangeModel<CumulativeRange, CumulativeOp> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    auto cumulative = cast<CumulativeOp>(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (!isa<IntegerType>(type.getElementType()))
      return;
    if (auto range = combinedRange(cumulative.getKind(), operands[0], type.getDimSize(cumulative.getDim())))
      set(op->getResult(0), *range);
  }
};

} // namespace

void registerReduceRanges(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ArgReduceOp, PlaceRange<ArgReduceOp>>(*context);
    attachOnce<SortedPositionOp, PlaceRange<SortedPositionOp>>(*context);
    attachOnce<ReduceOp, ReduceRange>(*context);
    attachOnce<CumulativeOp, CumulativeRange>(*context);
  });
}

} // namespace par
