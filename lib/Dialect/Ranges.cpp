#include "par/Dialect/Ranges.h"

#include "par/Dialect/Concerns.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"

using namespace mlir;

namespace par {

static ConstantIntRanges wholeRange(Type type) {
  return ConstantIntRanges::maxRange(ConstantIntRanges::getStorageBitwidth(getElementTypeOrSelf(type)));
}

/// Each value once: many lead to one along several ways.
static ConstantIntRanges findRange(Value value, DenseMap<Value, ConstantIntRanges> &known, unsigned depth) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  ConstantIntRanges range = wholeRange(value.getType());
  // Maximum depth of the analysis, which is recursive: it bounds the stack.
  constexpr unsigned maxDepth = 256;
  auto model = value.getDefiningOp<InferIntRangeInterface>();
  if (model && depth < maxDepth && isa<IntegerType>(getElementTypeOrSelf(value.getType()))) {
    SmallVector<ConstantIntRanges> operands;
    for (Value operand : model->getOperands())
      operands.push_back(findRange(operand, known, depth + 1));
    model.inferResultRanges(operands, [&](Value result, const ConstantIntRanges &inferred) {
      if (result == value)
        range = inferred;
    });
  }
  known.try_emplace(value, range);
  return range;
}

IntegerRange rangeOf(Value value) {
  DenseMap<Value, ConstantIntRanges> known;
  ConstantIntRanges range = findRange(value, known, 0);
  bool isBool = getElementTypeOrSelf(value.getType()).isInteger(1);
  return isBool ? IntegerRange{int64_t(range.umin().getZExtValue()), int64_t(range.umax().getZExtValue())}
                : IntegerRange{range.smin().getSExtValue(), range.smax().getSExtValue()};
}

void registerElementwiseRanges(DialectRegistry &registry);
void registerIndexRanges(DialectRegistry &registry);
void registerReduceRanges(DialectRegistry &registry);
void registerShapeRanges(DialectRegistry &registry);

void registerRanges(DialectRegistry &registry) {
  registerElementwiseRanges(registry);
  registerIndexRanges(registry);
  registerReduceRanges(registry);
  registerShapeRanges(registry);
}

} // namespace par
