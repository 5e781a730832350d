#include "par/Dialect/Indices.h"

#include "par/Dialect/Splat.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace par {

std::optional<FromEnd> matchFromEnd(Value value) {
  auto select = value.getDefiningOp<SelectOp>();
  auto isNegative = select ? select.getCondition().getDefiningOp<CompareOp>() : CompareOp();
  auto added = select ? select.getOnTrue().getDefiningOp<AddOp>() : AddOp();
  if (!isNegative || !added || isNegative.getPredicate() != Predicate::lt || readSplat(isNegative.getRhs()) != 0.0)
    return std::nullopt;
  Value index = select.getOnFalse();
  std::optional<double> size = readSplat(added.getRhs());
  if (isNegative.getLhs() != index || added.getLhs() != index || !size ||
      !isa<IntegerType>(getElementTypeOrSelf(index)))
    return std::nullopt;
  return FromEnd{index, int64_t(*size)};
}

std::optional<Replaced> matchReplaced(Value value) {
  auto select = value.getDefiningOp<SelectOp>();
  auto negated = select ? select.getCondition().getDefiningOp<NotOp>() : NotOp();
  Value condition = negated ? negated.getOperand() : select ? Value(select.getCondition()) : Value();
  auto compare = condition ? condition.getDefiningOp<CompareOp>() : CompareOp();
  if (!compare || !isa<IntegerType>(getElementTypeOrSelf(compare.getLhs())))
    return std::nullopt;
  std::optional<double> number = readSplat(compare.getRhs());
  bool isEqual = (compare.getPredicate() == Predicate::eq) != bool(negated);
  Value index = isEqual ? select.getOnFalse() : select.getOnTrue(),
        other = isEqual ? select.getOnTrue() : select.getOnFalse();
  constexpr double exact = 1ll << 53;
  if (!number || std::abs(*number) >= exact || index != compare.getLhs() ||
      !llvm::is_contained({Predicate::eq, Predicate::ne}, compare.getPredicate()))
    return std::nullopt;
  return Replaced{index, int64_t(*number), other};
}

bool keepsIntegers(Operation *op) {
  if (auto low = dyn_cast<AndOp>(op)) {
    DenseElementsAttr mask;
    return isa_and_nonnull<ConvertOp>(low->getOperand(0).getDefiningOp()) &&
           matchPattern(low->getOperand(1), m_Constant(&mask)) && mask.isSplat() &&
           mask.getSplatValue<APInt>().isMask();
  }
  auto convert = dyn_cast<ConvertOp>(op);
  return convert && isa<IntegerType>(getElementTypeOrSelf(convert.getOperand())) &&
         isa<IntegerType>(getElementTypeOrSelf(convert.getResult())) &&
         !getElementTypeOrSelf(convert.getOperand()).isInteger(1) &&
         !getElementTypeOrSelf(convert.getResult()).isInteger(1);
}

} // namespace par
