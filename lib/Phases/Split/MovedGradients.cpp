#include "MovedGradients.h"

using namespace mlir;

namespace par {

bool isLinearIn(Operation *op, ArrayRef<unsigned> sums) {
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  return rule &&
         llvm::any_of(rule.getShardingRule().linear, [&](ArrayRef<unsigned> set) { return llvm::equal(set, sums); });
}

/// Converting parts to a wider type before they are added loses no bits.
static bool isSameOrWider(Type from, Type to) {
  return from == to ||
         (isa<FloatType>(from) && isa<FloatType>(to) && from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth());
}

/// Whether the op depends linearly on the operand `sum` only, and its result has no more elements and none narrower.
static bool moves(Operation *op, unsigned sum) {
  if (op->getNumResults() != 1 || !op->hasOneUse() || !isLinearIn(op, sum))
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.getOperandNumber() != sum && !getTensorType(operand.get().getType()).getElementType().isInteger())
      return false;
  RankedTensorType from = getTensorType(op->getOperand(sum).getType()), to = getTensorType(op->getResult(0).getType());
  return from.getNumElements() >= to.getNumElements() && isSameOrWider(from.getElementType(), to.getElementType());
}

/// Whether the op's operand is a gradient, or one stage's part of it.
static bool endsInGradient(Operation *user) {
  while (isa<AddOp>(user) && !getStage(user) && user->hasOneUse())
    user = *user->user_begin();
  return isa<GradientOp>(user);
}

SmallVector<Operation *> movesIntoGradient(Operation *op, unsigned sum) {
  SmallVector<Operation *> chain;
  while (moves(op, sum)) {
    chain.push_back(op);
    OpOperand &use = *op->use_begin();
    if (endsInGradient(use.getOwner()))
      return chain;
    op = use.getOwner();
    sum = use.getOperandNumber();
  }
  return {};
}

} // namespace par
