// Reference semantics of convolutions, patches and pooling, by a list of taps: for each window and each element in it
// the element of the operand, or padding.
#include "../TensorTypes.h"
#include "par/Base/Indexing.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Combine.h"
#include "par/Dialect/Interfaces/Interpretable.h"
#include "par/Dialect/Windows.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace par::interp;

namespace par {
namespace {

using Results = FailureOr<SmallVector<Tensor>>;

/// One element of one window: which window, which element of it, and which element of the operand (-1: outside), all
/// row-major over the spatial dims.
struct Tap {
  int64_t window, element, position;
};

/// All taps, windows outermost, in row-major order.
std::vector<Tap> listTaps(const Windows &windows, ArrayRef<int64_t> lengths) {
  SmallVector<int64_t> counts = windows.counts(lengths), none(lengths.size(), 0);
  std::vector<Tap> taps;
  int64_t window = 0;
  forEachIndex(counts, none, [&](ArrayRef<int64_t> at, int64_t) {
    int64_t element = 0;
    forEachIndex(windows.size, none, [&](ArrayRef<int64_t> inside, int64_t) {
      int64_t position = 0;
      for (int64_t dim = 0; dim < windows.rank(); ++dim) {
        int64_t index = windows.position(dim, at[dim], inside[dim]);
        position = position < 0 || index < 0 || index >= lengths[dim] ? -1 : position * lengths[dim] + index;
      }
      taps.push_back({window, element++, position});
    });
    ++window;
  });
  return taps;
}

/// Calls visit(input, filter, output) with the offsets of every product of a convolution.
template <typename Visit>
void forEachProduct(const Windows &windows, int64_t groups, ArrayRef<int64_t> input, ArrayRef<int64_t> filter,
                    ArrayRef<int64_t> output, Visit visit) {
  std::vector<Tap> taps = listTaps(windows, input.drop_front(2));
  int64_t in = ShapedType::getNumElements(input.drop_front(2)), window = windows.elements(),
          out = ShapedType::getNumElements(output.drop_front(2));
  int64_t inputs = filter[1], outputs = filter[0] / groups;
  for (int64_t n = 0; n < input[0]; ++n)
    for (int64_t o = 0; o < filter[0]; ++o)
      for (int64_t c = 0; c < inputs; ++c) {
        int64_t from = (n * input[1] + o / outputs * inputs + c) * in, by = (o * inputs + c) * window,
                to = (n * output[1] + o) * out;
        for (const Tap &tap : taps)
          if (tap.position >= 0)
            visit(from + tap.position, by + tap.element, to + tap.window);
      }
}

struct ConvolutionInterpreter : InterpretableOpInterface::ExternalModel<ConvolutionInterpreter, ConvolutionOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto made = cast<ConvolutionOp>(op);
    Tensor result(resultType(op));
    ArrayRef<int64_t> filter = operands[1].getShape();
    ArrayRef<double> x = operands[0].floats(), w = operands[1].floats();
    MutableArrayRef<double> y = result.mutableFloats();
    forEachProduct(Windows::of(made, filter.drop_front(2)), made.getGroups(), operands[0].getShape(), filter,
                   result.getShape(), [&](int64_t i, int64_t f, int64_t o) { y[o] += x[i] * w[f]; });
    return SmallVector<Tensor>{result};
  }
};

struct InputGradInterpreter : InterpretableOpInterface::ExternalModel<InputGradInterpreter, ConvolutionInputGradOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto made = cast<ConvolutionInputGradOp>(op);
    Tensor result(resultType(op));
    ArrayRef<int64_t> filter = operands[1].getShape();
    ArrayRef<double> ct = operands[0].floats(), w = operands[1].floats();
    MutableArrayRef<double> x = result.mutableFloats();
    forEachProduct(Windows::of(made, filter.drop_front(2)), made.getGroups(), result.getShape(), filter,
                   operands[0].getShape(), [&](int64_t i, int64_t f, int64_t o) { x[i] += ct[o] * w[f]; });
    return SmallVector<Tensor>{result};
  }
};

struct FilterGradInterpreter : InterpretableOpInterface::ExternalModel<FilterGradInterpreter, ConvolutionFilterGradOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto made = cast<ConvolutionFilterGradOp>(op);
    Tensor result(resultType(op));
    ArrayRef<int64_t> filter = result.getShape();
    ArrayRef<double> x = operands[0].floats(), ct = operands[1].floats();
    MutableArrayRef<double> w = result.mutableFloats();
    forEachProduct(Windows::of(made, filter.drop_front(2)), made.getGroups(), operands[0].getShape(), filter,
                   operands[1].getShape(), [&](int64_t i, int64_t f, int64_t o) { w[f] += ct[o] * x[i]; });
    return SmallVector<Tensor>{result};
  }
};

struct PatchesInterpreter : InterpretableOpInterface::ExternalModel<PatchesInterpreter, PatchesOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto made = cast<PatchesOp>(op);
    Windows windows = Windows::of(made, made.getWindow());
    Tensor result(resultType(op));
    if (result.isFloat())
      read<double>(windows, operands[0].getShape(), operands[0].floats(), result.mutableFloats(),
                   cast<FloatAttr>(made.getValue()).getValueAsDouble());
    else
      read<int64_t>(windows, operands[0].getShape(), operands[0].ints(), result.mutableInts(),
                    result.getType().getElementType().isInteger(1) ? cast<BoolAttr>(made.getValue()).getValue()
                                                                   : cast<IntegerAttr>(made.getValue()).getInt());
    return SmallVector<Tensor>{result};
  }
  template <typename T>
  static void read(const Windows &windows, ArrayRef<int64_t> shape, ArrayRef<T> from, MutableArrayRef<T> to, T value) {
    ArrayRef<int64_t> lengths = shape.take_back(windows.rank());
    std::vector<Tap> taps = listTaps(windows, lengths);
    int64_t inner = ShapedType::getNumElements(lengths), at = 0;
    for (int64_t base = 0, size = from.size(); base < size; base += inner)
      for (const Tap &tap : taps)
        to[at++] = tap.position < 0 ? value : from[base + tap.position];
  }
};

struct FoldPatchesInterpreter : InterpretableOpInterface::ExternalModel<FoldPatchesInterpreter, FoldPatchesOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto made = cast<FoldPatchesOp>(op);
    Windows windows = Windows::of(made, operands[0].getShape().take_back(made.getStrides().size()));
    Tensor result(resultType(op));
    if (result.isFloat())
      add<double>(windows, result.getShape(), operands[0].floats(), result.mutableFloats());
    else
      add<int64_t>(windows, result.getShape(), operands[0].ints(), result.mutableInts());
    return SmallVector<Tensor>{result};
  }
  template <typename T>
  static void add(const Windows &windows, ArrayRef<int64_t> shape, ArrayRef<T> from, MutableArrayRef<T> to) {
    ArrayRef<int64_t> lengths = shape.take_back(windows.rank());
    std::vector<Tap> taps = listTaps(windows, lengths);
    int64_t inner = ShapedType::getNumElements(lengths), at = 0;
    for (int64_t base = 0, size = to.size(); base < size; base += inner)
      for (const Tap &tap : taps) {
        if (tap.position >= 0)
          to[base + tap.position] += from[at];
        ++at;
      }
  }
};

struct MaxPoolInterpreter : InterpretableOpInterface::ExternalModel<MaxPoolInterpreter, MaxPoolOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto made = cast<MaxPoolOp>(op);
    Windows windows = Windows::of(made, made.getWindow());
    Tensor result(resultType(op));
    if (result.isFloat()) {
      llvm::fill(result.mutableFloats(), -std::numeric_limits<double>::infinity());
      pool<double>(windows, operands[0].getShape(), operands[0].floats(), result.mutableFloats());
    } else {
      llvm::fill(result.mutableInts(), cast<IntegerAttr>(smallest(op)).getValue().getSExtValue());
      pool<int64_t>(windows, operands[0].getShape(), operands[0].ints(), result.mutableInts());
    }
    return SmallVector<Tensor>{result};
  }
  static TypedAttr smallest(Operation *op) {
    OpBuilder builder(op->getContext());
    return getSmallest(builder, resultType(op).getElementType());
  }
  template <typename T>
  static void pool(const Windows &windows, ArrayRef<int64_t> shape, ArrayRef<T> from, MutableArrayRef<T> to) {
    ArrayRef<int64_t> lengths = shape.take_back(windows.rank());
    std::vector<Tap> taps = listTaps(windows, lengths);
    int64_t inner = ShapedType::getNumElements(lengths), outer = ShapedType::getNumElements(windows.counts(lengths));
    for (int64_t part = 0, parts = to.size() / outer; part < parts; ++part)
      for (const Tap &tap : taps)
        if (tap.position >= 0)
          to[part * outer + tap.window] =
              combine(ReduceKind::max, to[part * outer + tap.window], from[part * inner + tap.position]);
  }
};

struct MaxPoolGradInterpreter : InterpretableOpInterface::ExternalModel<MaxPoolGradInterpreter, MaxPoolGradOp> {
  Results interpret(Operation *op, ArrayRef<Tensor> operands) const {
    auto made = cast<MaxPoolGradOp>(op);
    Windows windows = Windows::of(made, made.getWindow());
    Tensor result(resultType(op));
    ArrayRef<double> ct = operands[0].floats(), x = operands[1].floats();
    MutableArrayRef<double> to = result.mutableFloats();
    ArrayRef<int64_t> lengths = result.getShape().take_back(windows.rank());
    std::vector<Tap> taps = listTaps(windows, lengths);
    int64_t inner = ShapedType::getNumElements(lengths), outer = ShapedType::getNumElements(windows.counts(lengths));
    for (int64_t part = 0, parts = ct.size() / outer; part < parts; ++part) {
      // For each window, the position of the first largest element or of the last NaN, as in PyTorch; -1 if none lies
      // inside.
      std::vector<int64_t> found(outer, -1);
      for (const Tap &tap : taps) {
        int64_t &best = found[tap.window], position = part * inner + tap.position;
        if (tap.position >= 0 && (best < 0 || x[position] > x[best] || std::isnan(x[position])))
          best = position;
      }
      for (int64_t window = 0; window < outer; ++window)
        if (found[window] >= 0)
          to[found[window]] += ct[part * outer + window];
    }
    return SmallVector<Tensor>{result};
  }
};

} // namespace

void registerWindowInterpretations(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ConvolutionOp, ConvolutionInterpreter>(*context);
    attachOnce<ConvolutionInputGradOp, InputGradInterpreter>(*context);
    attachOnce<ConvolutionFilterGradOp, FilterGradInterpreter>(*context);
    attachOnce<PatchesOp, PatchesInterpreter>(*context);
    attachOnce<FoldPatchesOp, FoldPatchesInterpreter>(*context);
    attachOnce<MaxPoolOp, MaxPoolInterpreter>(*context);
    attachOnce<MaxPoolGradOp, MaxPoolGradInterpreter>(*context);
  });
}

} // namespace par
