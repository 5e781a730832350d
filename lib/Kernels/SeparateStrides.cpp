#include "Values.h"
#include "par/Dialect/Windows.h"
#include "par/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SEPARATESTRIDESPASS
#include "par/Kernels/Passes.h.inc"

/// Windows of one element that skip some.
static bool skipsElements(const Windows &windows) {
  return windows.elements() == 1 && llvm::any_of(windows.strides, [](int64_t stride) { return stride > 1; });
}

/// The elements of `operand` [N, C, ...] that the windows see, in its order.
static Value takeSeen(OpBuilder &builder, Location loc, Value operand, const Windows &windows) {
  TypedAttr zero = builder.getZeroAttr(getElementTypeOrSelf(operand.getType()));
  Value seen = buildPatches(builder, loc, operand, windows, zero);
  return buildReshape(builder, loc, seen, shapeOf(seen).drop_back(windows.rank()));
}

/// The op on windows that see every element.
template <typename Op>
static Op buildDense(OpBuilder &builder, Op op, RankedTensorType type, ValueRange operands) {
  SmallVector<int64_t> ones(op.getStrides().size(), 1), zeros(ones.size(), 0);
  return Op::create(builder, op.getLoc(), type, operands[0], operands[1], ones, zeros, zeros, ones, op.getGroups());
}

static bool separate(ConvolutionOp op) {
  Windows windows = Windows::of(op, shapeOf(op.getFilter()).drop_front(2));
  if (!skipsElements(windows))
    return false;
  OpBuilder builder(op);
  Value seen = takeSeen(builder, op.getLoc(), op.getOperand(), windows);
  op.replaceAllUsesWith(buildDense(builder, op, op.getType(), {seen, op.getFilter()}).getResult());
  return true;
}

static bool separate(ConvolutionFilterGradOp op) {
  Windows windows = Windows::of(op, shapeOf(op.getResult()).drop_front(2));
  if (!skipsElements(windows))
    return false;
  OpBuilder builder(op);
  Value seen = takeSeen(builder, op.getLoc(), op.getOperand(), windows);
  op.replaceAllUsesWith(buildDense(builder, op, op.getType(), {seen, op.getCotangent()}).getResult());
  return true;
}

static bool separate(ConvolutionInputGradOp op) {
  Windows windows = Windows::of(op, shapeOf(op.getFilter()).drop_front(2));
  if (!skipsElements(windows))
    return false;
  OpBuilder builder(op);
  SmallVector<int64_t> seen(shapeOf(op.getResult()).take_front(2));
  llvm::append_range(seen, shapeOf(op.getCotangent()).drop_front(2));
  Value made = buildDense(builder, op, op.getType().clone(seen), {op.getCotangent(), op.getFilter()});
  llvm::append_range(seen, windows.size);
  Value windowed = buildReshape(builder, op.getLoc(), made, seen);
  op.replaceAllUsesWith(FoldPatchesOp::create(builder, op.getLoc(), op.getType(), windowed, windows.strides, windows.low,
                                              windows.high, windows.dilations)
                            .getResult());
  return true;
}

namespace {
struct SeparateStridesPass : impl::SeparateStridesPassBase<SeparateStridesPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        for (Operation &op : llvm::make_early_inc_range(block.getBody().front()))
          llvm::TypeSwitch<Operation *>(&op).Case<ConvolutionOp, ConvolutionInputGradOp, ConvolutionFilterGradOp>(
              [](auto convolution) {
                if (separate(convolution))
                  convolution->erase();
              });
  }
};
} // namespace

} // namespace par
