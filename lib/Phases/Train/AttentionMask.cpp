// Recognizes causal masks of attention: booleans that are true, or false, exactly where k <= q, and numbers that are 0
// there and a low score elsewhere. Masks are read as formulas (MaskFormula.h), or element by element if they have none
// and are small.
#include "AttentionMask.h"

#include "par/Dialect/Interfaces/Interpretable.h"

#include <cfloat>
#include <cmath>

using namespace mlir;
using namespace par::interp;

namespace par {

/// Maximum elements of a mask that is computed element by element because its formula is unknown.
static constexpr int64_t maxElements = int64_t(1) << 16;

/// The value's elements, if it is computed only from constants.
static std::optional<Tensor> evaluate(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isTensorOp(op) || op->getNumResults() != 1 ||
      cast<RankedTensorType>(value.getType()).getNumElements() > maxElements)
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

/// The elements of one mask [q, k] that all leading dims share, one by one.
static std::optional<MaskRows> evaluateMask(Value mask) {
  // Skips broadcasts along leading dims, so that the mask is evaluated once.
  while (auto repeat = mask.getDefiningOp<BroadcastInDimOp>()) {
    auto type = repeat.getType(), operand = repeat.getOperand().getType();
    bool keeps = operand.getRank() >= 2 &&
                 repeat.getDims().take_back(2) == ArrayRef<int64_t>{type.getRank() - 2, type.getRank() - 1};
    if (!keeps || operand.getShape().take_back(2) != type.getShape().take_back(2))
      break;
    mask = repeat.getOperand();
  }
  auto type = cast<RankedTensorType>(mask.getType());
  if (type.getRank() < 2 || ShapedType::getNumElements(type.getShape().drop_back(2)) != 1)
    return std::nullopt;
  std::optional<Tensor> elements = evaluate(mask);
  if (!elements)
    return std::nullopt;
  MaskRows rows;
  rows.elements = *elements;
  int64_t columns = type.getShape().back();
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    rows.stretches.push_back({i / columns, i % columns, i % columns + 1});
  return rows;
}

/// Whether each stretch is on one side of the diagonal and `fits(i, below)` holds for it.
static bool isTriangle(const MaskRows &mask, function_ref<bool(int64_t, bool)> fits) {
  for (auto [i, stretch] : llvm::enumerate(mask.stretches)) {
    bool below = stretch.end <= stretch.row + 1;
    if ((!below && stretch.begin <= stretch.row) || !fits(i, below))
      return false;
  }
  return true;
}

AttentionMasks::Class AttentionMasks::classify(const MaskRows &mask) {
  const Tensor &elements = mask.elements;
  if (elements.isFloat()) {
    double hidden = -INFINITY;
    bool adds = isTriangle(mask, [&](int64_t i, bool meets) {
      double element = elements.floats()[i];
      if (!meets)
        hidden = std::fmax(hidden, element);
      return meets ? element == 0 : element <= lowScore;
    });
    return adds ? Class{Kind::Adds, hidden} : Class();
  }
  for (bool meets : {true, false})
    if (isTriangle(mask, [&](int64_t i, bool below) { return (elements.ints()[i] != 0) == (below == meets); }))
      return {meets ? Kind::Meets : Kind::Hides};
  return {};
}

AttentionMasks::Class AttentionMasks::readClass(Value mask) {
  if (std::optional<MaskFormula> formula = MaskFormula::read(mask)) {
    auto [place, isNew] = byFormula.try_emplace(formula->key());
    if (isNew)
      if (std::optional<MaskRows> rows = formula->evaluate())
        place->second = classify(*rows);
    return place->second;
  }
  std::optional<MaskRows> rows = evaluateMask(mask);
  return rows ? classify(*rows) : Class();
}

AttentionMasks::Class AttentionMasks::classOf(Value mask) {
  auto [place, isNew] = known.try_emplace(mask);
  if (isNew)
    place->second = readClass(mask);
  return place->second;
}

bool AttentionMasks::isCausalCondition(Value condition, bool meets) {
  return classOf(condition).kind == (meets ? Kind::Meets : Kind::Hides);
}

std::optional<double> AttentionMasks::causalSum(Value mask) {
  Class found = classOf(mask);
  return found.kind == Kind::Adds ? std::optional(found.hidden) : std::nullopt;
}

static std::optional<double> boundOfConstant(ConstantOp constant) {
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense)
    return std::nullopt;
  // All elements of a splat are one.
  Tensor elements =
      Tensor::ofAttribute(dense.isSplat() ? dense.resizeSplat(dense.getType().clone(ArrayRef<int64_t>{1})) : dense);
  double bound = 0;
  if (!elements.isFloat())
    for (int64_t element : elements.ints())
      bound = std::fmax(bound, std::fabs(double(element)));
  else
    for (double element : elements.floats())
      bound = std::isfinite(element) ? std::fmax(bound, std::fabs(element)) : INFINITY;
  return bound;
}

/// Bound of an op's elements, given the bounds of its operands.
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
