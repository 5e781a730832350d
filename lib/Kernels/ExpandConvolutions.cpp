#include "Values.h"
#include "par/Dialect/Term.h"
#include "par/Dialect/Windows.h"
#include "par/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_EXPANDCONVOLUTIONSPASS
#include "par/Kernels/Passes.h.inc"

namespace {

/// A convolution's three forms as products: its windows side by side are a matrix (Chellapilla et al., 2006, "High
/// performance convolutional neural networks for document processing"), by images and groups of channels. What is
/// summed over is one dim, and so are the columns, which a generated kernel runs along.
class Products {
public:
  Products(Operation *op, ArrayRef<int64_t> input, ArrayRef<int64_t> filter, ArrayRef<int64_t> output, Windows windows)
      : builder(op), loc(op->getLoc()), windows(std::move(windows)), input(input), filter(filter), output(output),
        images(input[0]), channels(filter[1]), groups(input[1] / channels), outputs(filter[0] / groups),
        places(ShapedType::getNumElements(output.drop_front(2))), elements(channels * this->windows.elements()) {}

  /// A row of the filter for each output channel, a column for each window.
  Value forward(Value operand, Value weights) {
    Value made = buildDot(builder, loc, spread(weights), patches(operand, /*elementsLast=*/false), {3}, {2}, {0, 1}, {0, 1});
    return buildReshape(builder, loc, made, output);
  }

  /// The gradient of every window, added where it came from.
  Value inputGrad(Value cotangent, Value weights) {
    Term made(builder, loc, buildDot(builder, loc, spread(weights), split(cotangent), {2}, {2}, {0, 1}, {0, 1}));
    int64_t leading = images * groups * channels;
    Term turned = made.reshape({leading, windows.elements(), places}).transpose({0, 2, 1});
    Value windowed = turned.reshape(windowedShape());
    auto type = RankedTensorType::get(input, made.getType().getElementType());
    return FoldPatchesOp::create(builder, loc, type, windowed, windows.strides, windows.low, windows.high, windows.dilations);
  }

  /// Sums over images and windows; a row for each output channel, a column for each element of a window.
  Value filterGrad(Value operand, Value cotangent) {
    Value made = buildDot(builder, loc, split(cotangent), patches(operand, /*elementsLast=*/true), {0, 3}, {0, 2}, {1}, {1});
    return buildReshape(builder, loc, made, filter);
  }

private:
  /// [N, G C, x..., k...].
  SmallVector<int64_t> windowedShape() const {
    SmallVector<int64_t> shape{images, groups * channels};
    llvm::append_range(shape, output.drop_front(2));
    llvm::append_range(shape, windows.size);
    return shape;
  }
  /// [N, G, C k, x], or [N, G, x, C k].
  Value patches(Value operand, bool elementsLast) {
    TypedAttr zero = builder.getZeroAttr(getElementTypeOrSelf(operand.getType()));
    Term made(builder, loc, buildPatches(builder, loc, operand, windows, zero));
    made = made.reshape({images, groups, channels, places, windows.elements()});
    if (elementsLast)
      return made.transpose({0, 1, 3, 2, 4}).reshape({images, groups, places, elements});
    return made.transpose({0, 1, 2, 4, 3}).reshape({images, groups, elements, places});
  }
  /// [N, G, O, C k], the same for every image.
  Value spread(Value weights) {
    Value split = buildReshape(builder, loc, weights, {groups, outputs, elements});
    return buildBroadcast(builder, loc, split, {1, 2, 3}, {images, groups, outputs, elements});
  }
  /// [N, G, O, x].
  Value split(Value cotangent) {
    return buildReshape(builder, loc, cotangent, {images, groups, outputs, places});
  }

  OpBuilder builder;
  Location loc;
  Windows windows;
  ArrayRef<int64_t> input, filter, output;
  int64_t images, channels, groups, outputs, places, elements;
};

} // namespace

/// The library of neither device has convolutions of float64.
static bool expands(Operation *op) { return getElementTypeOrSelf(op->getResult(0).getType()).isF64(); }

static Value expand(ConvolutionOp op) {
  ArrayRef<int64_t> filter = shapeOf(op.getFilter());
  Products products(op, shapeOf(op.getOperand()), filter, shapeOf(op.getResult()), Windows::of(op, filter.drop_front(2)));
  return products.forward(op.getOperand(), op.getFilter());
}
static Value expand(ConvolutionInputGradOp op) {
  ArrayRef<int64_t> filter = shapeOf(op.getFilter());
  Products products(op, shapeOf(op.getResult()), filter, shapeOf(op.getCotangent()), Windows::of(op, filter.drop_front(2)));
  return products.inputGrad(op.getCotangent(), op.getFilter());
}
static Value expand(ConvolutionFilterGradOp op) {
  ArrayRef<int64_t> filter = shapeOf(op.getResult());
  Products products(op, shapeOf(op.getOperand()), filter, shapeOf(op.getCotangent()), Windows::of(op, filter.drop_front(2)));
  return products.filterGrad(op.getOperand(), op.getCotangent());
}

namespace {
struct ExpandConvolutionsPass : impl::ExpandConvolutionsPassBase<ExpandConvolutionsPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (BlockOp block : program.getOps<BlockOp>())
        for (Operation &op : llvm::make_early_inc_range(block.getBody().front()))
          llvm::TypeSwitch<Operation *>(&op).Case<ConvolutionOp, ConvolutionInputGradOp, ConvolutionFilterGradOp>(
              [](auto convolution) {
                if (!expands(convolution))
                  return;
                convolution.replaceAllUsesWith(expand(convolution));
                convolution->erase();
              });
  }
};
} // namespace

} // namespace par
