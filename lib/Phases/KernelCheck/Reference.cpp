#include "Reference.h"

#include "par/Dialect/Interfaces/Cost.h"
#include "par/Interpreter/Interpreter.h"

#include <cmath>

using namespace mlir;

namespace par::kernel_check {

using interp::RankValues, interp::Tensor;

/// Distances between roundings by which code that rounds in another order may be off.
static constexpr double distances = 8;
/// Error from the order of sums, relative to the largest element of a result, by the lowest precision in a kernel.
static constexpr double slackOfF32 = 1e-5, slackOfF64 = 1e-10;

static LogicalResult interpretOnce(KernelOp kernel, ArrayRef<Tensor> operands, const Place &place,
                                   const Rounding *rounding, std::vector<Tensor> &results) {
  Block &body = kernel.getBody().front();
  RankValues values;
  for (auto [argument, operand] : llvm::zip(body.getArguments(), operands))
    values[argument] = operand;
  for (Operation &op : body.without_terminator()) {
    if (auto index = dyn_cast<AxisIndexOp>(op))
      values[index.getResult()] =
          Tensor::ofInts(cast<RankedTensorType>(index.getResult().getType()), {place.indexOf(index)});
    else if (failed(interp::runOp(op, values, {})))
      return failure();
    if (rounding && !movesElements(&op))
      for (Value result : op.getResults())
        roundElements(values[result], *rounding);
  }
  for (Value result : body.getTerminator()->getOperands())
    results.push_back(values[result]);
  return success();
}

/// Whether any value of the kernel is a float narrower than 64 bits.
static bool computesInF32(KernelOp kernel) {
  bool narrow = false;
  auto see = [&](Value value) {
    auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
    narrow |= type && type.getWidth() < 64;
  };
  llvm::for_each(kernel.getBody().getArguments(), see);
  kernel.walk([&](Operation *op) { llvm::for_each(op->getResults(), see); });
  return narrow;
}

FailureOr<std::vector<Reference>> interpretKernel(KernelOp kernel, ArrayRef<Tensor> operands, const Place &place,
                                                  unsigned again) {
  std::vector<Tensor> exact;
  if (failed(interpretOnce(kernel, operands, place, nullptr, exact)))
    return failure();
  double slack = computesInF32(kernel) ? slackOfF32 : slackOfF64;
  std::vector<Reference> references;
  for (Tensor &tensor : exact)
    references.push_back({tensor, {}, slack});
  for (unsigned number = 0; number < again; ++number) {
    Rounding rounding{number == 0, number};
    std::vector<Tensor> rounded;
    // An index computed from rounded numbers may be out of range: then there is one rounding less.
    ScopedDiagnosticHandler silent(kernel.getContext(), [](Diagnostic &) { return success(); });
    if (failed(interpretOnce(kernel, operands, place, &rounding, rounded)))
      break;
    for (auto [reference, tensor] : llvm::zip(references, rounded))
      reference.rounded.push_back(tensor);
  }
  return references;
}

double Reference::findLargest() const {
  double largest = 0;
  if (exact.isFloat())
    for (double value : exact.floats())
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
  return largest;
}

std::optional<double> Reference::boundOf(int64_t i, double largest) const {
  if (!exact.isFloat()) {
    for (const Tensor &other : rounded)
      if (other.ints()[i] != exact.ints()[i])
        return std::nullopt;
    return 0;
  }
  double value = exact.floats()[i], apart = 0;
  for (const Tensor &other : rounded) {
    double distance = std::abs(other.floats()[i] - value);
    bool same = std::isfinite(value) ? std::isfinite(distance)
                : std::isnan(value)  ? std::isnan(other.floats()[i])
                                     : value == other.floats()[i];
    if (!same)
      return std::nullopt;
    apart = std::isfinite(value) ? std::max(apart, distance) : 0;
  }
  if (!std::isfinite(value))
    return 0;
  auto type = cast<FloatType>(exact.getType().getElementType());
  // Numbers below the normal ones have a step of their own.
  double minStep = type.isF16() ? 0x1p-23 : 0x1p-126;
  return distances * apart + 2 * epsilonOf(type) * std::abs(value) + slack * largest + minStep;
}

static bool isAsExpected(const Reference &reference, const Tensor &computed, int64_t i, double bound) {
  Type type = reference.exact.getType().getElementType();
  if (!reference.exact.isFloat()) {
    uint64_t apart = static_cast<uint64_t>(reference.exact.ints()[i] ^ computed.ints()[i]);
    if (type.isInteger(1))
      return (reference.exact.ints()[i] != 0) == (computed.ints()[i] != 0);
    return (apart & llvm::maskTrailingOnes<uint64_t>(type.getIntOrFloatBitWidth())) == 0;
  }
  double expected = reference.exact.floats()[i], value = computed.floats()[i];
  if (std::isnan(expected) || std::isnan(value))
    return std::isnan(expected) && std::isnan(value);
  if (std::isinf(expected))
    return expected == value;
  if (std::isinf(value)) // more than the type holds
    return std::signbit(value) == std::signbit(expected) &&
           std::abs(expected) + bound >= largestOf(cast<FloatType>(type));
  return std::abs(expected - value) <= bound;
}

std::optional<Difference> findDifference(const Reference &reference, const Tensor &computed, uint64_t &compared) {
  double largest = reference.findLargest();
  auto numberOf = [](const Tensor &tensor, int64_t i) {
    return tensor.isFloat() ? tensor.floats()[i] : static_cast<double>(tensor.ints()[i]);
  };
  for (int64_t i = 0; i < computed.getSize(); ++i) {
    std::optional<double> bound = reference.boundOf(i, largest);
    if (!bound)
      continue;
    ++compared;
    if (!isAsExpected(reference, computed, i, *bound))
      return Difference{i, numberOf(reference.exact, i), numberOf(computed, i), *bound};
  }
  return std::nullopt;
}

} // namespace par::kernel_check
