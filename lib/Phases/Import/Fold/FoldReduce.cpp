#include "par/Phases/Import/Fold.h"

#include <algorithm>

namespace par {
namespace {

using llvm::ArrayRef;
using llvm::failure;
using llvm::FailureOr;
using llvm::SmallVector;

FailureOr<StaticTensor> foldCumSum(const FoldContext &context) {
  const StaticTensor *input = context.input(0), *axis = context.input(1);
  if (!input || !axis || axis->getElements() != 1)
    return failure();
  FailureOr<int64_t> dim = normalizeDim(axis->intAt(0), input->getRank());
  if (failed(dim))
    return failure();
  bool exclusive = context.node.intAttribute("exclusive", 0) != 0, reverse = context.node.intAttribute("reverse", 0);
  int64_t size = input->getShape()[*dim];
  Shape stored(input->getStored()), lines(stored);
  stored[*dim] = size;
  lines[*dim] = 1;
  if (countElements(stored) > foldLimit)
    return failure();
  StaticTensor result(input->getType(), input->getShape(), stored);
  forEachIndex(lines, [&](ArrayRef<int64_t> line) {
    Shape index(line);
    StaticTensor sum(input->getType(), {}, {});
    for (int64_t i = 0; i < size; ++i) {
      index[*dim] = reverse ? size - 1 - i : i;
      int64_t to = result.position(index), from = input->position(index);
      if (exclusive)
        result.copy(to, sum, 0);
      if (input->isFloat())
        sum.set(0, sum.floatAt(0) + input->floatAt(from));
      else
        sum.setInt(0, int64_t(uint64_t(sum.intAt(0)) + uint64_t(input->intAt(from))));
      if (!exclusive)
        result.copy(to, sum, 0);
    }
  });
  return result;
}

enum class Kind { Sum, Product, Max, Min };

template <Kind kind>
double join(double a, double b) {
  if constexpr (kind == Kind::Sum)
    return a + b;
  if constexpr (kind == Kind::Product)
    return a * b;
  return kind == Kind::Max ? std::max(a, b) : std::min(a, b);
}

/// Integers go through double: exact below 2^53, and larger sums of shape arithmetic do not occur.
template <Kind kind>
FailureOr<StaticTensor> foldReduce(const FoldContext &context) {
  const StaticTensor *input = context.input(0);
  if (!input || input->getElements() > foldLimit)
    return failure();
  std::optional<SmallVector<int64_t>> axes = context.intsFrom("axes", 1);
  SmallVector<bool> reduced(input->getRank(), !axes || axes->empty());
  if ((!axes || axes->empty()) && context.node.intAttribute("noop_with_empty_axes", 0))
    return *input;
  for (int64_t axis : axes.value_or(SmallVector<int64_t>{})) {
    FailureOr<int64_t> dim = normalizeDim(axis, input->getRank());
    if (failed(dim))
      return failure();
    reduced[*dim] = true;
  }
  Shape kept(input->getShape()), squeezed;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i])
      kept[i] = 1;
    else
      squeezed.push_back(kept[i]);
  }
  SmallVector<std::optional<double>> totals(countElements(kept));
  StaticTensor result(input->getType(), kept, kept);
  forEachIndex(input->getShape(), [&](ArrayRef<int64_t> index) {
    std::optional<double> &total = totals[result.position(index)];
    double value = input->floatAt(input->position(index));
    total = total ? join<kind>(*total, value) : value;
  });
  for (size_t i = 0; i < totals.size(); ++i)
    result.set(i, totals[i].value_or(kind == Kind::Product ? 1 : 0));
  return context.node.intAttribute("keepdims", 1) ? result : result.reshaped(squeezed);
}

} // namespace

void addReduceFolds(FoldTable &table) {
  table["CumSum"] = foldCumSum;
  table["ReduceSum"] = foldReduce<Kind::Sum>;
  table["ReduceProd"] = foldReduce<Kind::Product>;
  table["ReduceMax"] = foldReduce<Kind::Max>;
  table["ReduceMin"] = foldReduce<Kind::Min>;
}

} // namespace par
