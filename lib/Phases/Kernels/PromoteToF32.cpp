#include "par/Dialect/Attention.h"
#include "par/Dialect/Interfaces/Cost.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PROMOTETOF32PASS
#include "par/Phases/Kernels/Passes.h.inc"

/// A float format of less than 32 bits, in which the CPU computes nothing.
static bool isLowPrecision(Value value) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  return element && element.getWidth() < 32;
}

static bool computesLowPrecision(Operation *op) {
  if (isa<AttentionOp, AttentionGradOp>(op)) // attention is a library call by now, which supports 16-bit types
    return false;
  if (!isTensorOp(op) || op->hasTrait<OpTrait::ConstantLike>() || getCost(op).flops == 0)
    return false;
  return llvm::any_of(op->getOperands(), isLowPrecision) || llvm::any_of(op->getResults(), isLowPrecision);
}

/// Kernels convert only between f32 and 16-bit types; other converts go through f32.
static bool isKnownConvert(ConvertOp convert) {
  auto known = [](Value value) { return isLowPrecision(value) || getElementTypeOrSelf(value.getType()).isF32(); };
  return isLowPrecision(convert.getOperand()) != isLowPrecision(convert.getResult()) && known(convert.getOperand()) &&
         known(convert.getResult());
}

/// The value in f32, at the insertion point; with `early` the convert goes before an op that only reorders elements.
static Value widened(OpBuilder &builder, Value value, bool early) {
  Type f32 = builder.getF32Type();
  Operation *op = value.getDefiningOp();
  bool reorders =
      early && op && isTensorOp(op) && op->getNumOperands() == 1 && isLowPrecision(op->getOperand(0)) &&
      movesElements(op) &&
      getTensorType(op->getOperand(0).getType()).getNumElements() == getTensorType(value.getType()).getNumElements();
  if (!reorders)
    return buildConvert(builder, value.getLoc(), value, f32);
  Value operand = widened(builder, op->getOperand(0), early);
  Operation *copy = builder.clone(*op);
  copy->setOperand(0, operand);
  copy->getResult(0).setType(getTensorType(value.getType()).clone(f32));
  return copy->getResult(0);
}

/// Converts the op's operands to f32 and its results back.
static void widen(Operation *op, bool early) {
  OpBuilder builder(op);
  Type f32 = builder.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    if (isLowPrecision(operand.get()))
      operand.set(widened(builder, operand.get(), early));
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (!isLowPrecision(result))
      continue;
    Type narrow = getElementTypeOrSelf(result.getType());
    result.setType(cast<RankedTensorType>(result.getType()).clone(f32));
    Value rounded = buildConvert(builder, op->getLoc(), result, narrow);
    result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
  }
}

namespace {
struct PromoteToF32Pass : impl::PromoteToF32PassBase<PromoteToF32Pass> {
  using PromoteToF32PassBase::PromoteToF32PassBase;

  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        for (Operation &op : llvm::make_early_inc_range(block.getBody().front())) {
          auto convert = dyn_cast<ConvertOp>(op);
          if (computesLowPrecision(&op) && !(convert && isKnownConvert(convert)))
            widen(&op, device == "cpu");
        }
    getOperation().walk([](BlockOp block) {
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block.getBody().front())))
        if (isOpTriviallyDead(&op)) // layout ops that are in f32 now
          op.erase();
    });
  }
};
} // namespace

} // namespace par
