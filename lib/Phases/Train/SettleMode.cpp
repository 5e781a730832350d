#include "SettleMode.h"

#include "par/Dialect/Modes.h"

using namespace mlir;

namespace par {

void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!isa<GradientOp>(op) && isOpTriviallyDead(&op))
      op.erase();
}

/// Folds `op` with its known operands; null if it does not fold.
static OpFoldResult foldKnown(Operation &op, ArrayRef<Attribute> operands) {
  if (auto select = dyn_cast<SelectOp>(op))
    if (auto condition = dyn_cast_or_null<SplatElementsAttr>(operands.front()))
      return condition.getSplatValue<bool>() ? select.getOnTrue() : select.getOnFalse();
  SmallVector<OpFoldResult, 1> results;
  return succeeded(op.fold(operands, results)) && results.size() == 1 ? results.front() : OpFoldResult();
}

void settleMode(StepOp step, bool trains) {
  DenseMap<Value, Attribute> known; // values that depend only on the mode: all other constants stay as they are
  for (Operation &op : llvm::make_early_inc_range(step.getBlock())) {
    if (auto read = dyn_cast<ReadOp>(op); read && read.getVariable() == trainingVariable) {
      OpBuilder builder(read);
      Value mode =
          buildSplat(builder, read.getLoc(), cast<RankedTensorType>(read.getResult().getType()), trains ? 1 : 0);
      matchPattern(mode, m_Constant(&known[mode]));
      read.replaceAllUsesWith(mode);
      read.erase();
      continue;
    }
    auto operands = llvm::map_to_vector(op.getOperands(), [&](Value value) { return known.lookup(value); });
    if (llvm::none_of(operands, [](Attribute value) { return value != nullptr; }))
      continue;
    OpFoldResult folded = foldKnown(op, operands);
    if (auto value = dyn_cast_or_null<Attribute>(folded))
      known[op.getResult(0)] = value;
    else if (auto value = dyn_cast_or_null<Value>(folded))
      op.getResult(0).replaceAllUsesWith(value);
  }
  if (!known.empty())
    eraseDead(step.getBlock());
}

} // namespace par
