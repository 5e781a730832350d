#include "AttentionMask.h"

#include "par/Interfaces/Interpretable.h"

#include <cfloat>
#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {

/// Elements up to which a mask is computed here: that of 8,192 tokens.
static constexpr int64_t mostElements = int64_t(1) << 26;

/// The value's elements, if it is computed from constants alone.
static std::optional<Tensor> evaluate(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isTensorOp(op) || op->getNumResults() != 1 ||
      cast<RankedTensorType>(value.getType()).getNumElements() > mostElements)
    return std::nullopt;
  auto interpretable = dyn_cast<InterpretableOpInterface>(op);
  if (!interpretable)
    return std::nullopt;
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Tensor> known = evaluate(operand);
    if (!known)
      return std::nullopt;
    operands.push_back(*known);
  }
  FailureOr<SmallVector<Tensor>> results = interpretable.interpret(operands);
  return succeeded(results) ? std::optional(results->front()) : std::nullopt;
}

/// The elements of one mask [q, k] that all leading dims share.
static std::optional<Tensor> evaluateMask(Value mask) {
  // What repeats it is not computed.
  while (Operation *op = mask.getDefiningOp()) {
    auto type = cast<RankedTensorType>(mask.getType());
    auto operand = op->getNumOperands() == 1 ? dyn_cast<RankedTensorType>(op->getOperand(0).getType()) : RankedTensorType();
    auto repeat = dyn_cast<BroadcastInDimOp>(op);
    bool keeps = repeat && operand.getRank() >= 2 && ArrayRef(repeat.getDims()).take_back(2) ==
                                                        ArrayRef<int64_t>{type.getRank() - 2, type.getRank() - 1};
    if (!keeps || operand.getShape().take_back(2) != type.getShape().take_back(2))
      break;
    mask = op->getOperand(0);
  }
  auto type = cast<RankedTensorType>(mask.getType());
  if (type.getRank() < 2 || ShapedType::getNumElements(type.getShape().drop_back(2)) != 1)
    return std::nullopt;
  return evaluate(mask);
}

/// Whether `masks(i)` says of every element i whether it is below the diagonal.
static bool isTriangle(const Tensor &mask, function_ref<bool(int64_t, bool)> fits) {
  int64_t keys = mask.getShape().back(), queries = mask.getSize() / keys;
  for (int64_t q = 0; q < queries; ++q)
    for (int64_t k = 0; k < keys; ++k)
      if (!fits(q * keys + k, k <= q))
        return false;
  return true;
}

bool isCausalCondition(Value condition, bool meets) {
  std::optional<Tensor> mask = evaluateMask(condition);
  return mask && !mask->isFloat() &&
         isTriangle(*mask, [&](int64_t i, bool below) { return (mask->ints()[i] != 0) == (below == meets); });
}

bool isCausalSum(Value value) {
  std::optional<Tensor> mask = evaluateMask(value);
  return mask && mask->isFloat() && isTriangle(*mask, [&](int64_t i, bool meets) {
           return meets ? mask->floats()[i] == 0 : mask->floats()[i] <= lowScore;
         });
}

static std::optional<double> boundOfConstant(ConstantOp constant) {
  Tensor elements = Tensor::ofAttribute(constant.getValue());
  double bound = 0;
  if (!elements.isFloat())
    for (int64_t element : elements.ints())
      bound = std::fmax(bound, std::fabs(double(element)));
  else
    for (double element : elements.floats())
      bound = std::isfinite(element) ? std::fmax(bound, std::fabs(element)) : INFINITY;
  return bound;
}

/// Of an op whose operands have these bounds.
static std::optional<double> boundOfOp(Operation *op, ArrayRef<double> operands) {
  if (isa<BroadcastInDimOp, ReshapeOp, TransposeOp, SliceOp, ConvertOp, NegateOp>(op))
    return operands[0];
  if (isa<MultiplyOp>(op))
    return operands[0] * operands[1];
  if (isa<AddOp, SubtractOp>(op))
    return operands[0] + operands[1];
  if (isa<SelectOp>(op))
    return std::fmax(operands[1], operands[2]);
  return std::nullopt;
}

std::optional<double> boundOf(Value value) {
  auto element = getElementTypeOrSelf(value.getType());
  if (element.isInteger(1))
    return 1;
  Operation *op = value.getDefiningOp();
  std::optional<double> bound;
  if (auto constant = dyn_cast_if_present<ConstantOp>(op)) {
    bound = boundOfConstant(constant);
  } else if (op && isTensorOp(op)) {
    SmallVector<double> operands;
    for (Value operand : op->getOperands()) {
      std::optional<double> known = boundOf(operand);
      if (!known)
        return std::nullopt;
      operands.push_back(*known);
    }
    bound = boundOfOp(op, operands);
  } else if (isa<IntegerType>(element)) {
    bound = std::ldexp(1, 63); // an input
  }
  double largest = element.isBF16() ? 0x1.fep127 : element.isF16() ? 65504 : FLT_MAX;
  return bound && *bound <= largest ? bound : std::nullopt;
}

} // namespace par
