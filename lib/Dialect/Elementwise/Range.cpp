#include "../RangeModel.h"
#include "par/Dialect/Indices.h"

#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"

using namespace mlir;

namespace par {
namespace {

/// Booleans are no numbers; only logic ops have ranges for them.
bool isNumberTensor(Value value) {
  Type element = getElementTypeOrSelf(value);
  return isa<IntegerType>(element) && !element.isInteger(1);
}

/// Applies one of MLIR's range rules to the elements of a tensor.
template <typename Op, auto rule>
struct ByRule : RangeModel<ByRule<Op, rule>, Op> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    if (isNumberTensor(op->getResult(0)))
      set(op->getResult(0), rule(operands));
  }
};

ConstantIntRanges addRanges(ArrayRef<ConstantIntRanges> operands) { return intrange::inferAdd(operands); }
ConstantIntRanges subtractRanges(ArrayRef<ConstantIntRanges> operands) { return intrange::inferSub(operands); }
ConstantIntRanges multiplyRanges(ArrayRef<ConstantIntRanges> operands) { return intrange::inferMul(operands); }
ConstantIntRanges negateRange(ArrayRef<ConstantIntRanges> operands) {
  return intrange::inferSub(
      {ConstantIntRanges::constant(APInt::getZero(operands[0].smin().getBitWidth())), operands[0]});
}

/// The range after `size` is added to negative indices, which count from the end.
ConstantIntRanges fromEndRange(const ConstantIntRanges &index, int64_t size) {
  unsigned width = index.smin().getBitWidth();
  if (index.smin().isNonNegative())
    return index;
  auto below =
      ConstantIntRanges::fromSigned(index.smin(), llvm::APIntOps::smin(index.smax(), APInt::getAllOnes(width)));
  ConstantIntRanges raised =
      intrange::inferAdd({below, ConstantIntRanges::constant(APInt(width, uint64_t(size), true, true))});
  if (index.smax().isNegative())
    return raised;
  return raised.rangeUnion(ConstantIntRanges::fromSigned(APInt::getZero(width), index.smax()));
}

/// Recognises min and max: `a < b ? a : b` is -1 (the smaller one), `a < b ? b : a` is 1; nothing for any other select.
std::optional<int> extremeOf(SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<CompareOp>();
  if (!compare)
    return std::nullopt;
  Predicate predicate = compare.getPredicate();
  bool less = predicate == Predicate::lt || predicate == Predicate::le;
  if (!less && predicate != Predicate::gt && predicate != Predicate::ge)
    return std::nullopt;
  if (compare.getLhs() == select.getOnTrue() && compare.getRhs() == select.getOnFalse())
    return less ? -1 : 1;
  if (compare.getLhs() == select.getOnFalse() && compare.getRhs() == select.getOnTrue())
    return less ? 1 : -1;
  return std::nullopt;
}

/// The union of both values. A value clamped by comparisons is bounded, and an index that counts from the end is not
/// negative after the addition.
struct SelectRange : RangeModel<SelectRange, SelectOp> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    Value result = op->getResult(0);
    if (std::optional<FromEnd> counted = matchFromEnd(result))
      set(result, fromEndRange(operands[2], counted->size));
    else if (!isNumberTensor(result))
      return;
    else if (std::optional<int> sign = extremeOf(cast<SelectOp>(op)))
      set(result, *sign < 0 ? intrange::inferMinS(operands.drop_front()) : intrange::inferMaxS(operands.drop_front()));
    else
      set(result, operands[1].rangeUnion(operands[2]));
  }
};

/// Booleans are 0 and 1, other integers signed; converted floats have no known range.
struct ConvertRange : RangeModel<ConvertRange, ConvertOp> {
  void inferResultRanges(Operation *op, ArrayRef<ConstantIntRanges> operands, SetIntRangeFn set) const {
    auto convert = cast<ConvertOp>(op);
    auto from = dyn_cast<IntegerType>(getElementTypeOrSelf(convert.getOperand())),
         to = dyn_cast<IntegerType>(getElementTypeOrSelf(convert.getResult()));
    if (!from || !to || to.getWidth() == 1)
      return;
    unsigned width = to.getWidth();
    set(convert.getResult(), from.getWidth() == 1       ? intrange::extUIRange(operands[0], width)
                             : from.getWidth() < width  ? intrange::extSIRange(operands[0], width)
                             : from.getWidth() == width ? operands[0]
                                                        : intrange::truncRange(operands[0], width));
  }
};

} // namespace

void registerElementwiseRanges(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<AddOp, ByRule<AddOp, addRanges>>(*context);
    attachOnce<SubtractOp, ByRule<SubtractOp, subtractRanges>>(*context);
    attachOnce<MultiplyOp, ByRule<MultiplyOp, multiplyRanges>>(*context);
    attachOnce<DivideOp, ByRule<DivideOp, intrange::inferDivS>>(*context);
    attachOnce<RemainderOp, ByRule<RemainderOp, intrange::inferRemS>>(*context);
    attachOnce<MaximumOp, ByRule<MaximumOp, intrange::inferMaxS>>(*context);
    attachOnce<MinimumOp, ByRule<MinimumOp, intrange::inferMinS>>(*context);
    attachOnce<AndOp, ByRule<AndOp, intrange::inferAnd>>(*context);
    attachOnce<OrOp, ByRule<OrOp, intrange::inferOr>>(*context);
    attachOnce<XorOp, ByRule<XorOp, intrange::inferXor>>(*context);
    attachOnce<NegateOp, ByRule<NegateOp, negateRange>>(*context);
    attachOnce<SelectOp, SelectRange>(*context);
    attachOnce<ConvertOp, ConvertRange>(*context);
  });
}

} // namespace par
