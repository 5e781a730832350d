// Adds several partial sums over the same axes before their total is reduced once.
#include "Propagation.h"

using namespace mlir;

namespace par {

/// The ops from a value back to the one that makes it a partial sum, if values in between have no other users.
SmallVector<Operation *> Propagation::traceSum(Value value, Axes &axes) {
  SmallVector<Operation *> path;
  while (Operation *op = value.getDefiningOp()) {
    auto rule = rules.find(op);
    if (rule == rules.end() || op->getNumResults() != 1 || !value.hasOneUse() || !unreduced.lookup(value).empty())
      break;
    path.push_back(op);
    axes = sumAxes(op, value, /*summand=*/true);
    if (!axes.empty())
      return path;
    if (op->getNumOperands() != 1 || rule->second.linear.empty())
      break;
    value = op->getOperand(0);
  }
  return {};
}

/// Summands that are all partial sums over the same axes are added before they are reduced: one reduction for all. They
/// are not sharded over these axes, even if the total is.
void Propagation::deferReductions(Operation &op) {
  auto rule = rules.find(&op);
  if (rule == rules.end() || op.getNumResults() != 1)
    return;
  for (auto &set : rule->second.linear) {
    Axes all;
    SmallVector<Operation *> made;
    for (unsigned operand : set) {
      Axes axes;
      SmallVector<Operation *> path = traceSum(op.getOperand(operand), axes);
      if (path.empty() || (operand != set.front() && axes != all))
        return;
      all = axes;
      made.append(path);
    }
    if (set.size() < 2)
      return;
    for (Operation *source : made) {
      Value value = source->getResult(0);
      SmallVector<Axes> dims(dimsOf(value));
      for (Axes &dim : dims)
        llvm::erase_if(dim, [&](StringAttr axis) { return llvm::is_contained(all, axis); });
      bare[value] = dims;
      unreduced[value] = all;
      setSharding(value, makeSharding(op.getContext(), dims, all));
    }
  }
}

/// Adds partial sums before other values: (x + p) + q becomes (p + q) + x. So a residual's gradient, which is computed
/// first, does not separate the gradients of queries, keys and values. Scalars, as a norm's terms, are reduced one by
/// one: one collective takes all of them.
void Propagation::meetSums(Operation &op) {
  auto rule = rules.find(&op);
  bool adds = rule != rules.end() && op.hasTrait<OpTrait::IsCommutative>() && op.getNumOperands() == 2 &&
              llvm::any_of(rule->second.linear, [](auto &set) { return set.size() == 2; }) &&
              cast<RankedTensorType>(op.getResult(0).getType()).getNumElements() > 1;
  for (unsigned number = 0; adds && number < 2; ++number) {
    OpOperand &operand = op.getOpOperand(number), &other = op.getOpOperand(1 - number);
    Operation *inner = operand.get().getDefiningOp();
    Axes axes;
    if (!inner || inner->getName() != op.getName() || !operand.get().hasOneUse() || traceSum(other.get(), axes).empty())
      continue;
    for (OpOperand &plain : inner->getOpOperands()) {
      Value sum = inner->getOperand(1 - plain.getOperandNumber()), rest = plain.get();
      Axes mine, none;
      if (!traceSum(rest, none).empty() || traceSum(sum, mine).empty() || mine != axes)
        continue;
      plain.set(other.get());
      other.set(rest);
      inner->moveBefore(&op);
      deferReductions(*inner);
      return;
    }
  }
}

} // namespace par
