// Stochastic depth and other hand-written dropping of elements, which no ONNX operator marks as training-only (Dropout
// does). The pattern: numbers drawn as 1 with a probability p and divided by p, which keeps the mean of their factor.
// Outside of training they are 1 (Huang et al. 2016, "Deep networks with stochastic depth", which scales by p instead).
// Written as m / p, x * m / p, or x / p * m.
#include "DropPath.h"

#include "par/Dialect/Splat.h"

#include <cmath>

namespace par {

using namespace mlir;

/// Whether the elements are uniform in [0, 1), as a random operator draws them.
static bool isUniform(Value value) {
  double scale = 1;
  while (Operation *op = value.getDefiningOp()) {
    if (isa<MultiplyOp, AddOp, ShiftRightOp>(op)) {
      std::optional<double> number = readSplat(op->getOperand(1));
      if (!number || (isa<AddOp>(op) && *number != 0))
        return false;
      scale = isa<MultiplyOp>(op)     ? scale * *number
              : isa<ShiftRightOp>(op) ? scale * std::ldexp(1.0, int(64 - *number))
                                      : scale;
    } else if (isa<RandomBitsOp>(op)) {
      return scale == 1;
    } else if (!isa<ConvertOp, BroadcastInDimOp, ReshapeOp>(op)) {
      return false;
    }
    value = op->getOperand(0);
  }
  return false;
}

/// The probability that each element is 1, if it is drawn as 1 or 0: u < p, u >= 1 - p, floor(u + p).
static std::optional<double> keptWith(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto compare = dyn_cast<CompareOp>(op)) {
      std::optional<double> bound = isUniform(compare.getLhs()) ? readSplat(compare.getRhs()) : std::nullopt;
      Predicate predicate = compare.getPredicate();
      bool below = predicate == Predicate::lt || predicate == Predicate::le;
      bool known = bound && (below || predicate == Predicate::gt || predicate == Predicate::ge);
      return known ? std::optional(below ? *bound : 1 - *bound) : std::nullopt;
    }
    if (auto floor = dyn_cast<FloorOp>(op)) {
      auto add = floor.getOperand().getDefiningOp<AddOp>();
      for (unsigned i : {0u, 1u})
        if (add && isUniform(add->getOperand(i)))
          return readSplat(add->getOperand(1 - i));
      return std::nullopt;
    }
    if (!isa<ConvertOp, BroadcastInDimOp, ReshapeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

/// The value before its reshapes: import moves reshapes after elementwise ops.
static Value behindReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

/// The dividend of a division by a number (or of a multiplication by its inverse), and the number.
static std::pair<Value, double> dividedBy(Value value) {
  Operation *op = behindReshapes(value).getDefiningOp();
  if (op && isa<DivideOp>(op))
    return {op->getOperand(0), readSplat(op->getOperand(1)).value_or(0)};
  for (unsigned i : {0u, 1u})
    if (std::optional<double> number = op && isa<MultiplyOp>(op) ? readSplat(op->getOperand(i)) : std::nullopt)
      return {op->getOperand(1 - i), 1 / *number};
  return {Value(), 0};
}

/// As modules write both: in f32, from a number in double.
static bool isSame(std::optional<double> chance, double number) {
  return chance && *chance > 0 && std::fabs(*chance - number) <= 1e-6 * *chance;
}

/// The value of a dropping multiplication or division when nothing is dropped, perhaps in another shape; null if it
/// does not drop.
static Value findKept(NodeImporter &importer, Value value) {
  auto [whole, by] = dividedBy(value); // m / p, (x * m) / p
  if (whole && isSame(keptWith(whole), by))
    return importer.splat(cast<RankedTensorType>(value.getType()), 1);
  Operation *product = behindReshapes(whole ? whole : value).getDefiningOp();
  if (!product || !isa<MultiplyOp>(product))
    return Value();
  for (unsigned i : {0u, 1u}) {
    Value other = product->getOperand(1 - i);
    std::optional<double> chance = keptWith(product->getOperand(i));
    if (whole && isSame(chance, by))
      return other;
    if (auto [x, own] = dividedBy(other); !whole && x && isSame(chance, own)) // x / p * m
      return x;
  }
  return Value();
}

FailureOr<Value> keepWhereNotTrained(NodeImporter &importer, Value value) {
  if (!isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()))
    return value;
  Value kept = findKept(importer, value);
  if (!kept)
    return value;
  kept = buildReshape(importer.builder, importer.loc, kept, cast<RankedTensorType>(value.getType()).getShape());
  return importer.serves() ? kept : importer.whereTrained(value, kept);
}

} // namespace par
