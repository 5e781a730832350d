#include "Convolutions.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Kernels/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_EXPANDCONVOLUTIONSPASS
#include "par/Phases/Kernels/Passes.h.inc"

namespace {

/// A convolution's three forms as matmuls (im2col): its windows side by side are a matrix (Chellapilla et al., 2006,
/// "High performance convolutional neural networks for document processing"), with images and groups of channels as
/// batch dims. There is one contracted dim and one dim of columns, along which a generated kernel runs.
class ConvolutionMatmuls {
public:
  ConvolutionMatmuls(Operation *op, const ConvolutionSides &sides, Windows windows)
      : builder(op), loc(op->getLoc()), windows(std::move(windows)), input(shapeOf(sides.input)),
        filter(shapeOf(sides.filter)), output(shapeOf(sides.output)), images(input[0]), channels(filter[1]),
        groups(input[1] / channels), outputs(filter[0] / groups),
        places(ShapedType::getNumElements(output.drop_front(2))), elements(channels * this->windows.elements()) {}

  /// A row of the filter for each output channel, a column for each window.
  Value of(ConvolutionOp op) {
    Value windowed = patches(op.getOperand(), /*elementsLast=*/false);
    return buildReshape(builder, loc,
                        buildDot(builder, loc, spread(op.getFilter()), windowed, {3}, {2}, {0, 1}, {0, 1}), output);
  }

  /// The gradient of every window, added where it came from.
  Value of(ConvolutionInputGradOp op) {
    Term made(builder, loc,
              buildDot(builder, loc, spread(op.getFilter()), split(op.getCotangent()), {2}, {2}, {0, 1}, {0, 1}));
    int64_t leading = images * groups * channels;
    Term turned = made.reshape({leading, windows.elements(), places}).transpose({0, 2, 1});
    return FoldPatchesOp::create(builder, loc, op.getType(), turned.reshape(windowedShape()), windows.strides,
                                 windows.low, windows.high, windows.dilations);
  }

  /// Sums over images and windows; a row for each output channel, a column for each element of a window.
  Value of(ConvolutionFilterGradOp op) {
    Value windowed = patches(op.getOperand(), /*elementsLast=*/true);
    return buildReshape(builder, loc,
                        buildDot(builder, loc, split(op.getCotangent()), windowed, {0, 3}, {0, 2}, {1}, {1}), filter);
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
  Value split(Value cotangent) { return buildReshape(builder, loc, cotangent, {images, groups, outputs, places}); }

  OpBuilder builder;
  Location loc;
  Windows windows;
  ArrayRef<int64_t> input, filter, output;
  int64_t images, channels, groups, outputs, places, elements;
};

} // namespace

namespace {
struct ExpandConvolutionsPass : impl::ExpandConvolutionsPassBase<ExpandConvolutionsPass> {
  void runOnOperation() override {
    rebuildConvolutions(getOperation(), [](auto convolution) {
      // The library of neither device has convolutions of float64.
      bool expands = convolution.getType().getElementType().isF64();
      return expands ? ConvolutionMatmuls(convolution, sidesOf(convolution), windowsOf(convolution)).of(convolution)
                     : Value();
    });
  }
};
} // namespace

} // namespace par
