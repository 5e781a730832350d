#include "par/Dialect/Interfaces/Bilinear.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_WIDENSUMSPASS
#include "par/Phases/Train/Passes.h.inc"

/// Moves the elements of its one operand.
static bool movesOneOperand(Operation *op) { return isTensorOp(op) && op->getNumOperands() == 1 && movesElements(op); }

/// Widens the result of a matmul whose only user is a widening convert, through layout ops, so that its sum is not
/// rounded.
static bool promoteMatmul(ConvertOp convert) {
  SmallVector<Value> path;
  for (Value value = convert.getOperand();; value = value.getDefiningOp()->getOperand(0)) {
    Operation *op = value.getDefiningOp();
    if (!op || !value.hasOneUse() || (!movesOneOperand(op) && !isBilinear(op)))
      return false;
    path.push_back(value);
    if (isBilinear(op))
      break;
  }
  for (Value value : path)
    value.setType(cast<RankedTensorType>(value.getType()).clone(convert.getType().getElementType()));
  convert.replaceAllUsesWith(convert.getOperand());
  convert.erase();
  return true;
}

/// True for a convert of a variable's value, perhaps after layout ops.
static bool comesFromVariable(Value value) {
  Operation *op = value.getDefiningOp();
  return op &&
         (isa<ReadOp>(op) || ((isa<ConvertOp>(op) || movesOneOperand(op)) && comesFromVariable(op->getOperand(0))));
}

/// Copies the op for one use, with the ops between it and a variable.
static void copyForUse(OpOperand &use, OpBuilder &builder) {
  Operation *op = use.get().getDefiningOp();
  builder.setInsertionPoint(use.getOwner());
  Operation *copy = builder.clone(*op);
  use.set(copy->getResult(0));
  OpOperand &source = copy->getOpOperand(0);
  if (!isa<ReadOp>(source.get().getDefiningOp()) && comesFromVariable(source.get()))
    copyForUse(source, builder);
}

namespace {
struct WidenSumsPass : impl::WidenSumsPassBase<WidenSumsPass> {
  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>()) {
      SmallVector<ConvertOp> copied;
      for (ConvertOp convert : llvm::make_early_inc_range(step.getBlock().getOps<ConvertOp>())) {
        auto from = dyn_cast<FloatType>(convert.getOperand().getType().getElementType()),
             to = dyn_cast<FloatType>(convert.getType().getElementType());
        if (!from || !to)
          continue;
        if (from.getWidth() < to.getWidth() && promoteMatmul(convert))
          continue;
        if (from.getWidth() < to.getWidth() || comesFromVariable(convert))
          copied.push_back(convert);
      }
      OpBuilder builder(&getContext());
      for (ConvertOp convert : copied)
        for (OpOperand &use : llvm::make_early_inc_range(convert->getUses()))
          if (!convert->hasOneUse() && !use.getOwner()->hasTrait<OpTrait::IsTerminator>())
            copyForUse(use, builder);
    }
  }
};
} // namespace

} // namespace par
