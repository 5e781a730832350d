// Describes a kernel as a builtin call with operands and sizes: optimizers, cross-entropy, gather and scatter,
// convolutions, pooling. Returns nothing if the body is not exactly the builtin's function.
#include "AttentionCall.h"
#include "CallBuilder.h"
#include "LastConvolution.h"
#include "RowWrites.h"
#include "Values.h"
#include "par/Dialect/Windows.h"

using namespace mlir;

namespace par {
namespace {

using Call = std::optional<BuiltinCall>;
/// A gradient as an optimizer's builtin takes it: multiplied by a scalar first, if there is one.
struct Gradient {
  Value value, coefficient;
};

} // namespace

/// Reads x * broadcast(scalar) as x with a coefficient.
static Gradient readGradient(Value gradient) {
  auto product = gradient.getDefiningOp<MultiplyOp>();
  if (!product)
    return {gradient, {}};
  for (auto [value, factor] : {std::pair(product.getLhs(), product.getRhs()), {product.getRhs(), product.getLhs()}}) {
    auto broadcast = factor.getDefiningOp<BroadcastInDimOp>();
    if (broadcast && getTensorType(broadcast.getOperand().getType()).getRank() == 0)
      return {value, broadcast.getOperand()};
  }
  return {gradient, {}};
}

static int64_t countElements(Value value) { return getTensorType(value.getType()).getNumElements(); }
static double real(FloatAttr value) { return value.getValueAsDouble(); }

/// An optimizer's kernel that updates all of a weight, or that of the rows that the op names.
template <typename Op>
static CallBuilder callOf(KernelOp kernel, Op op) {
  std::string name = op->getName().stripDialect().str();
  return CallBuilder(kernel, op.getRows() ? name + "_rows" : name);
}

/// The elements; of rows as many as there are, their width, and how many the weight has.
template <typename Op>
static SmallVector<int64_t> sizesOf(Op op) {
  if (!op.getRows())
    return {countElements(op.getWeight())};
  int64_t rows = shapeOf(op.getWeight()).front();
  return {countElements(op.getRows()), countElements(op.getWeight()) / std::max<int64_t>(rows, 1), rows};
}

static std::optional<BuiltinCall> describe(KernelOp kernel, AdamwOp op) {
  Gradient gradient = readGradient(op.getGradient());
  CallBuilder call = callOf(kernel, op);
  call.update(op.getWeight(), op.getNewWeight())
      .read(gradient.value)
      .update(op.getFirst(), op.getNewFirst())
      .update(op.getSecond(), op.getNewSecond())
      .read(op.getStep())
      .read(op.getLr());
  if (op.getRows())
    call.read(op.getRows());
  return call.readIf(gradient.coefficient)
      .integers(sizesOf(op))
      .reals({real(op.getBeta1Attr()), real(op.getBeta2Attr()), real(op.getEpsilonAttr()),
              real(op.getWeightDecayAttr()), 1.0})
      .integers({gradient.coefficient ? 1 : 0})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, SgdOp op) {
  Gradient gradient = readGradient(op.getGradient());
  CallBuilder call = callOf(kernel, op);
  call.update(op.getWeight(), op.getNewWeight()).read(gradient.value).read(op.getLr());
  if (op.getRows())
    call.read(op.getRows());
  return call.readIf(gradient.coefficient)
      .integers(sizesOf(op))
      .reals({real(op.getWeightDecayAttr()), 1.0})
      .integers({gradient.coefficient ? 1 : 0})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, MomentumOp op) {
  Gradient gradient = readGradient(op.getGradient());
  CallBuilder call = callOf(kernel, op);
  call.update(op.getWeight(), op.getNewWeight())
      .read(gradient.value)
      .update(op.getVelocity(), op.getNewVelocity())
      .read(op.getLr());
  if (op.getRows())
    call.read(op.getRows());
  // The velocity starts as zeros, so that the first step is like all others.
  return call.readIf(gradient.coefficient)
      .leaveOut()
      .integers(sizesOf(op))
      .reals({real(op.getMomentumAttr()), real(op.getWeightDecayAttr())})
      .integers({op.getNesterov()})
      .reals({1.0})
      .integers({gradient.coefficient ? 1 : 0})
      .finish();
}

/// The elements from one row of logits to the next where they are kept.
static int64_t rowPitch(Value logits) {
  auto widening = logits.getDefiningOp<ConvertOp>();
  return shapeOf(widening ? withPadding(widening.getOperand()) : logits).back();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, CrossEntropyOp op) {
  int64_t rows = countElements(op.getLabels()), classes = shapeOf(op.getLogits()).back(),
          cols = rowPitch(op.getLogits());
  CallBuilder call(kernel, cols == classes ? "cross_entropy" : "cross_entropy_padded");
  call.readRows(op.getLogits()).read(op.getLabels()).write(op.getLoss()).write(op.getLse());
  call.integers({rows, cols, int64_t(op.getIgnore())});
  if (cols != classes)
    call.integers({classes});
  return call.finish();
}

static std::optional<BuiltinCall> describeGradient(KernelOp kernel, CrossEntropyGradOp op, ConvertOp narrowing,
                                                   PadOp padding = {}) {
  int64_t rows = countElements(op.getLabels()), classes = shapeOf(op.getLogits()).back(),
          cols = rowPitch(op.getLogits());
  if (cols != shapeOf(padding ? padding.getResult() : op.getResult()).back())
    return std::nullopt;
  return CallBuilder(kernel, "cross_entropy_backward")
      .readRows(op.getLogits())
      .read(op.getLabels())
      .read(op.getLse())
      .read(op.getCotangent())
      .writeRows(op.getResult(), narrowing, padding)
      .integers({rows, cols, int64_t(op.getIgnore()), 0, classes})
      .finish();
}

/// A gradient with zeros after its rows, which the kernel writes, too.
static std::optional<BuiltinCall> describe(KernelOp kernel, PadOp op) {
  auto narrowing = op.getOperand().getDefiningOp<ConvertOp>();
  auto gradient = narrowing ? narrowing.getOperand().getDefiningOp<CrossEntropyGradOp>() : CrossEntropyGradOp();
  if (!gradient || !padsRows(op))
    return std::nullopt;
  return describeGradient(kernel, gradient, narrowing, op);
}

static std::optional<BuiltinCall> describe(KernelOp kernel, CrossEntropyGradOp op) {
  return describeGradient(kernel, op, {});
}

/// The sum of the squares of all elements. For small tensors it is generated instead: the call first fills its sum with
/// zeros.
static std::optional<BuiltinCall> describe(KernelOp kernel, ReduceOp op) {
  constexpr int64_t fewest = 16384;
  auto square = op.getOperand().getDefiningOp<MultiplyOp>();
  if (op.getKind() != ReduceKind::sum || !square || square.getLhs() != square.getRhs() ||
      countElements(op.getResult()) != 1 || countElements(op.getOperand()) < fewest)
    return std::nullopt;
  return CallBuilder(kernel, "sum_squares")
      .read(square.getLhs())
      .accumulate({}, op.getResult())
      .besides()
      .integers({countElements(square.getResult())})
      .reals({1.0})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, GatherOp op) {
  ArrayRef<int64_t> table = getTensorType(op.getOperand().getType()).getShape();
  if (op.getDim() != 0 || table[0] == 0)
    return std::nullopt;
  return CallBuilder(kernel, "gather_rows")
      .read(op.getOperand())
      .read(op.getIndices())
      .write(op.getResult())
      .integers({countElements(op.getIndices()), countElements(op.getOperand()) / table[0], table[0], 0})
      .finish();
}

static std::optional<BuiltinCall> describeScatter(KernelOp kernel, IndexAddOp op, Value accumulator, Value sum) {
  if (op.getDim() != 0 || op.getSize() == 0)
    return std::nullopt;
  int64_t rows = op.getSize();
  return CallBuilder(kernel, "scatter_add_rows")
      .accumulate(accumulator, sum)
      .read(op.getIndices())
      .read(op.getUpdates())
      .integers({countElements(op.getIndices()), countElements(op.getResult()) / rows, rows, 0})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, IndexAddOp op) {
  return describeScatter(kernel, op, {}, op.getResult());
}

/// A scattered sum added to an accumulator.
static std::optional<BuiltinCall> describe(KernelOp kernel, AddOp op) {
  for (auto [summand, accumulator] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}})
    if (auto scatter = summand.getDefiningOp<IndexAddOp>())
      return describeScatter(kernel, scatter, accumulator, op.getResult());
  return std::nullopt;
}

/// Appends the windows to `sizes` as the builtins count them: three spatial dims, leading ones of size 1. False for
/// padding that crops, and more dims.
template <typename Op>
static bool appendWindows(Op op, ArrayRef<int64_t> in, ArrayRef<int64_t> window, ArrayRef<int64_t> out,
                          SmallVector<int64_t> &sizes) {
  bool crops =
      llvm::any_of(llvm::concat<const int64_t>(op.getLow(), op.getHigh()), [](int64_t pad) { return pad < 0; });
  if (in.size() > 3 || crops)
    return false;
  auto add = [&](ArrayRef<int64_t> values, int64_t formal) {
    sizes.append(3 - values.size(), formal);
    llvm::append_range(sizes, values);
  };
  add(in, 1);
  add(window, 1);
  add(out, 1);
  add(op.getStrides(), 1);
  add(op.getLow(), 0);
  add(op.getHigh(), 0);
  add(op.getDilations(), 1);
  return true;
}

template <typename Op>
static std::optional<SmallVector<int64_t>> sizesOfConvolution(Op op) {
  ConvolutionSides sides = sidesOf(op);
  ArrayRef<int64_t> in = shapeOf(sides.input), window = shapeOf(sides.filter), out = shapeOf(sides.output);
  SmallVector<int64_t> sizes{in[0], int64_t(op.getGroups()), window[1], window[0]};
  if (!appendWindows(op, in.drop_front(2), window.drop_front(2), out.drop_front(2), sizes))
    return std::nullopt;
  return sizes;
}

std::optional<SmallVector<int64_t>> convolutionSizes(ConvolutionOp op) { return sizesOfConvolution(op); }

template <typename Op>
static std::optional<BuiltinCall> describeConvolution(KernelOp kernel, Op op, StringRef name, ConvertOp narrowing) {
  std::optional<SmallVector<int64_t>> sizes = sizesOfConvolution(op);
  if (!sizes)
    return std::nullopt;
  return CallBuilder(kernel, name).convert(op->getOperands(), op.getResult(), narrowing).integers(*sizes).finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, ConvolutionOp op, ConvertOp narrowing = {}) {
  return describeConvolution(kernel, op, "convolution", narrowing);
}
static std::optional<BuiltinCall> describe(KernelOp kernel, ConvolutionInputGradOp op, ConvertOp narrowing = {}) {
  return describeConvolution(kernel, op, "convolution_input_grad", narrowing);
}
static std::optional<BuiltinCall> describe(KernelOp kernel, ConvolutionFilterGradOp op, ConvertOp narrowing = {}) {
  return describeConvolution(kernel, op, "convolution_filter_grad", narrowing);
}

/// The convert of a gradient or of a convolution's result to low precision.
static std::optional<BuiltinCall> describe(KernelOp kernel, ConvertOp op) {
  Operation *source = op.getOperand().getDefiningOp();
  if (!source)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Call>(source)
      .Case([&](CrossEntropyGradOp gradient) { return describeGradient(kernel, gradient, op); })
      .Case<ConvolutionOp, ConvolutionInputGradOp, ConvolutionFilterGradOp>(
          [&](auto convolution) { return describe(kernel, convolution, op); })
      .Default([](Operation *) { return Call(); });
}

/// Planes, and the windows over them; places within a plane are counted in 32 bits.
template <typename Op>
static std::optional<SmallVector<int64_t>> poolSizes(Op op, Value input, Value output) {
  ArrayRef<int64_t> in = shapeOf(input), out = shapeOf(output);
  size_t leading = in.size() - op.getWindow().size();
  SmallVector<int64_t> sizes{ShapedType::getNumElements(in.take_front(leading))};
  if (ShapedType::getNumElements(in.drop_front(leading)) > INT32_MAX ||
      !appendWindows(op, in.drop_front(leading), op.getWindow(), out.drop_front(leading), sizes))
    return std::nullopt;
  return sizes;
}

static std::optional<BuiltinCall> describe(KernelOp kernel, MaxPoolOp op) {
  std::optional<SmallVector<int64_t>> sizes = poolSizes(op, op.getOperand(), op.getResult());
  if (!sizes)
    return std::nullopt;
  return CallBuilder(kernel, "max_pool").read(op.getOperand()).write(op.getResult()).integers(*sizes).finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, MaxPoolGradOp op) {
  std::optional<SmallVector<int64_t>> sizes = poolSizes(op, op.getOperand(), op.getCotangent());
  if (!sizes)
    return std::nullopt;
  return CallBuilder(kernel, "max_pool_grad")
      .read(op.getCotangent())
      .read(op.getOperand())
      .read(op.getLargest())
      .write(op.getResult())
      .integers(*sizes)
      .finish();
}

std::optional<BuiltinCall> describeBuiltin(KernelOp kernel) {
  // The op before the return. Before it there may be a gradient's scaling, an accumulated value, or a convert to f32.
  Operation *op = kernel.getTerminator()->getPrevNode();
  if (!op)
    return std::nullopt;
  if (Call call = describeLastConvolution(kernel))
    return call;
  return llvm::TypeSwitch<Operation *, Call>(op)
      .Case<AdamwOp, SgdOp, MomentumOp, CrossEntropyOp, CrossEntropyGradOp, ConvertOp, PadOp, ReduceOp, GatherOp,
            IndexAddOp, AddOp, ConvolutionOp, ConvolutionInputGradOp, ConvolutionFilterGradOp, MaxPoolOp,
            MaxPoolGradOp>([&](auto op) { return describe(kernel, op); })
      .Case([&](SelectOp) { return describeRowWrite(kernel); })
      .Default([&](Operation *) { return describeAttention(kernel); });
}

} // namespace par
