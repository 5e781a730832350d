#include "Convolutions.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SEPARATESTRIDESPASS
#include "par/Phases/Kernels/Passes.h.inc"

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
static Value buildDense(OpBuilder &builder, Op op, RankedTensorType type, ValueRange operands) {
  SmallVector<int64_t> ones(op.getStrides().size(), 1), zeros(ones.size(), 0);
  return Op::create(builder, op.getLoc(), type, operands[0], operands[1], ones, zeros, zeros, ones, op.getGroups());
}

/// The convolution, or the gradient of its filter, of the elements that it sees.
template <typename Op>
static Value separate(OpBuilder &builder, Op op, const Windows &windows) {
  Value seen = takeSeen(builder, op.getLoc(), op.getOperand(), windows);
  return buildDense(builder, op, op.getType(), {seen, op->getOperand(1)});
}

/// The gradient of those elements, put back where they were.
static Value separate(OpBuilder &builder, ConvolutionInputGradOp op, const Windows &windows) {
  SmallVector<int64_t> seen(shapeOf(op.getResult()).take_front(2));
  llvm::append_range(seen, shapeOf(op.getCotangent()).drop_front(2));
  Value made = buildDense(builder, op, op.getType().clone(seen), op->getOperands());
  llvm::append_range(seen, windows.size);
  return FoldPatchesOp::create(builder, op.getLoc(), op.getType(), buildReshape(builder, op.getLoc(), made, seen),
                               windows.strides, windows.low, windows.high, windows.dilations);
}

namespace {
struct SeparateStridesPass : impl::SeparateStridesPassBase<SeparateStridesPass> {
  void runOnOperation() override {
    rebuildConvolutions(getOperation(), [](auto convolution) {
      Windows windows = windowsOf(convolution);
      OpBuilder builder(convolution);
      return skipsElements(windows) ? separate(builder, convolution, windows) : Value();
    });
  }
};
} // namespace

} // namespace par
