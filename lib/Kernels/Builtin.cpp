#include "par/Kernels/Builtin.h"
#include "par/Dialect/Attention.h"

using namespace mlir;

namespace par {
namespace {

using kernels::Access;

/// A gradient as an optimizer's builtin takes it: multiplied by a scalar first, if there is one.
struct Gradient {
  Value value, coefficient;
};

/// Builds the call for a kernel whose body is one op: operands are named by that op's operands and results.
class CallBuilder {
public:
  CallBuilder(KernelOp kernel, StringRef name) : kernel(kernel) {
    call.kernel = kernels::findBuiltin(std::string_view(name.data(), name.size()));
  }

  CallBuilder &read(Value operand) {
    call.operands.push_back({argumentOf(operand), std::nullopt, Access::Read});
    return *this;
  }
  /// The operand that comes last, if it is there.
  CallBuilder &readIf(Value operand) {
    if (!operand)
      return *this;
    others += 2;
    return read(operand);
  }
  CallBuilder &write(Value result) {
    call.operands.push_back({std::nullopt, resultOf(result), Access::Write});
    return *this;
  }
  CallBuilder &update(Value operand, Value result) {
    call.operands.push_back({argumentOf(operand), resultOf(result), Access::Update});
    return *this;
  }
  CallBuilder &integers(ArrayRef<int64_t> values) {
    for (int64_t value : values)
      call.immediates.push_back(uint64_t(value));
    return *this;
  }
  CallBuilder &reals(ArrayRef<double> values) {
    for (double value : values)
      call.immediates.push_back(kernels::realImmediate(value));
    return *this;
  }
  /// Adds to a result; to the accumulator, which comes by an add behind the op, if there is one.
  CallBuilder &accumulate(Value accumulator, Value result) {
    others += accumulator ? 1 : 0;
    call.zeroFirst = !accumulator;
    call.operands.push_back(
        {accumulator ? argumentOf(accumulator) : std::nullopt, resultOf(result), Access::Accumulate});
    return *this;
  }
  /// Rows that are stored in bf16 or f16: reads what the widening reads, by the kernel's form for that type.
  CallBuilder &readRows(Value rows) {
    auto widening = rows.getDefiningOp<ConvertOp>();
    if (!widening || !call.kernel)
      return read(rows);
    ++others;
    Type from = widening.getOperand().getType().getElementType();
    std::string_view form = from.isBF16() ? "_bf16" : "_f16";
    call.kernel = kernels::findBuiltin(std::string(call.kernel->name).append(form));
    return read(widening.getOperand());
  }
  /// Operands that are all widened from one type, and a result that is narrowed to it: by the kernel's form for that.
  CallBuilder &convert(ValueRange operands, Value result, ConvertOp narrowing) {
    if (narrowing && call.kernel) {
      std::string_view form = narrowing.getType().getElementType().isBF16() ? "_bf16" : "_f16";
      call.kernel = kernels::findBuiltin(std::string(call.kernel->name).append(form));
      others += operands.size();
    }
    for (Value operand : operands) {
      auto widening = narrowing ? operand.getDefiningOp<ConvertOp>() : ConvertOp();
      read(widening ? widening.getOperand() : operand);
    }
    return writeRows(result, narrowing);
  }
  /// What is narrowed before it is written.
  CallBuilder &writeRows(Value result, ConvertOp narrowing) {
    others += narrowing ? 1 : 0;
    return write(narrowing ? narrowing.getResult() : result);
  }
  /// An op of the body that the builtin does too.
  CallBuilder &besides() {
    ++others;
    return *this;
  }
  /// An argument that the builtin does not need.
  CallBuilder &leaveOut() {
    ++leftOut;
    return *this;
  }
  std::optional<BuiltinCall> finish();

private:
  std::optional<unsigned> argumentOf(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? std::optional<unsigned>(argument.getArgNumber()) : std::nullopt;
  }
  std::optional<unsigned> resultOf(Value value) {
    for (auto [index, result] : llvm::enumerate(kernel.getTerminator()->getOperands()))
      if (result == value)
        return index;
    return std::nullopt;
  }

  KernelOp kernel;
  BuiltinCall call;
  unsigned leftOut = 0;
  /// Ops of the body beside the one that is described and the return.
  unsigned others = 0;
};

} // namespace

/// Whether a table's word means that type.
static bool hasType(Type element, std::string_view word) {
  return word == "f32"    ? element.isF32()
         : word == "bf16" ? element.isBF16()
         : word == "f16"  ? element.isF16()
                          : element.isInteger(64);
}

/// Every value has its argument or result, updates are tied as the kernel says, types are those of the table.
std::optional<BuiltinCall> CallBuilder::finish() {
  if (kernel.getBlock().getOperations().size() != 2 + others)
    return std::nullopt;
  if (!call.kernel || call.immediates.size() != call.kernel->immediates.size() ||
      call.operands.size() > call.kernel->operands.size())
    return std::nullopt;
  llvm::SmallDenseSet<unsigned> arguments; // one may stand for several operands
  unsigned results = 0;
  for (auto [value, expected] : llvm::zip(call.operands, call.kernel->operands)) {
    bool updates = value.access == Access::Update || (value.access == Access::Accumulate && value.argument);
    bool writes = updates || value.access != Access::Read, reads = updates || value.access == Access::Read;
    if (reads != value.argument.has_value() || writes != value.result.has_value() || value.access != expected.access)
      return std::nullopt;
    if (reads)
      arguments.insert(*value.argument);
    results += writes;
    Type type = reads ? kernel.getArgumentTypes()[*value.argument] : kernel.getResultTypes()[*value.result];
    if (!hasType(getTensorType(type).getElementType(), expected.type))
      return std::nullopt;
    if (!writes)
      continue;
    int64_t tied = kernel.getTied() ? (*kernel.getTied())[*value.result] : -1;
    if (tied != (updates ? int64_t(*value.argument) : -1))
      return std::nullopt;
  }
  if (arguments.size() + leftOut != kernel.getArgumentTypes().size() || results != kernel.getResultTypes().size())
    return std::nullopt;
  return call;
}

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

static std::optional<BuiltinCall> describe(KernelOp kernel, AdamwOp op) {
  Gradient gradient = readGradient(op.getGradient());
  return CallBuilder(kernel, "adamw")
      .update(op.getWeight(), op.getNewWeight())
      .read(gradient.value)
      .update(op.getFirst(), op.getNewFirst())
      .update(op.getSecond(), op.getNewSecond())
      .read(op.getStep())
      .read(op.getLr())
      .readIf(gradient.coefficient)
      .integers({countElements(op.getWeight())})
      .reals({real(op.getBeta1Attr()), real(op.getBeta2Attr()), real(op.getEpsilonAttr()),
              real(op.getWeightDecayAttr()), 1.0})
      .integers({gradient.coefficient ? 1 : 0})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, SgdOp op) {
  Gradient gradient = readGradient(op.getGradient());
  return CallBuilder(kernel, "sgd")
      .update(op.getWeight(), op.getNewWeight())
      .read(gradient.value)
      .read(op.getLr())
      .readIf(gradient.coefficient)
      .integers({countElements(op.getWeight())})
      .reals({real(op.getWeightDecayAttr()), 1.0})
      .integers({gradient.coefficient ? 1 : 0})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, MomentumOp op) {
  Gradient gradient = readGradient(op.getGradient());
  // The velocity starts as zeros, so that the first step is like all others.
  return CallBuilder(kernel, "momentum")
      .update(op.getWeight(), op.getNewWeight())
      .read(gradient.value)
      .update(op.getVelocity(), op.getNewVelocity())
      .read(op.getLr())
      .readIf(gradient.coefficient)
      .leaveOut()
      .integers({countElements(op.getWeight())})
      .reals({real(op.getMomentumAttr()), real(op.getWeightDecayAttr())})
      .integers({op.getNesterov()})
      .reals({1.0})
      .integers({gradient.coefficient ? 1 : 0})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, CrossEntropyOp op) {
  int64_t rows = countElements(op.getLabels());
  return CallBuilder(kernel, "cross_entropy")
      .readRows(op.getLogits())
      .read(op.getLabels())
      .write(op.getLoss())
      .write(op.getLse())
      .integers({rows, getTensorType(op.getLogits().getType()).getShape().back(), int64_t(op.getIgnore())})
      .finish();
}

static std::optional<BuiltinCall> describeGradient(KernelOp kernel, CrossEntropyGradOp op, ConvertOp narrowing) {
  int64_t rows = countElements(op.getLabels()), cols = getTensorType(op.getLogits().getType()).getShape().back();
  return CallBuilder(kernel, "cross_entropy_backward")
      .readRows(op.getLogits())
      .read(op.getLabels())
      .read(op.getLse())
      .read(op.getCotangent())
      .writeRows(op.getResult(), narrowing)
      .integers({rows, cols, int64_t(op.getIgnore()), 0, cols})
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, CrossEntropyGradOp op) {
  return describeGradient(kernel, op, {});
}

/// The sum of the squares of all elements. Those of small tensors are generated: the call fills its sum with zeros first.
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

static std::optional<BuiltinCall> describeScatter(KernelOp kernel, ScatterAddOp op, Value accumulator, Value sum) {
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

static std::optional<BuiltinCall> describe(KernelOp kernel, ScatterAddOp op) {
  return describeScatter(kernel, op, {}, op.getResult());
}

/// What is added to an accumulator.
static std::optional<BuiltinCall> describe(KernelOp kernel, AddOp op) {
  for (auto [summand, accumulator] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}})
    if (auto scatter = summand.getDefiningOp<ScatterAddOp>())
      return describeScatter(kernel, scatter, accumulator, op.getResult());
  return std::nullopt;
}

/// The windows as the builtins count them, behind `sizes`: three spatial dims, formal ones first. False for padding that
/// crops, and more dims.
template <typename Op>
static bool appendWindows(Op op, ArrayRef<int64_t> in, ArrayRef<int64_t> window, ArrayRef<int64_t> out,
                          SmallVector<int64_t> &sizes) {
  bool crops = llvm::any_of(llvm::concat<const int64_t>(op.getLow(), op.getHigh()), [](int64_t pad) { return pad < 0; });
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

static ArrayRef<int64_t> shapeOf(Value value) { return getTensorType(value.getType()).getShape(); }

template <typename Op>
static std::optional<BuiltinCall> describeConvolution(KernelOp kernel, Op op, StringRef name, Value input, Value filter,
                                                      Value output, ConvertOp narrowing) {
  ArrayRef<int64_t> in = shapeOf(input), window = shapeOf(filter), out = shapeOf(output);
  SmallVector<int64_t> sizes{in[0], int64_t(op.getGroups()), window[1], window[0]};
  if (!appendWindows(op, in.drop_front(2), window.drop_front(2), out.drop_front(2), sizes))
    return std::nullopt;
  return CallBuilder(kernel, name).convert(op->getOperands(), op.getResult(), narrowing).integers(sizes).finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, ConvolutionOp op, ConvertOp narrowing = {}) {
  return describeConvolution(kernel, op, "convolution", op.getOperand(), op.getFilter(), op.getResult(), narrowing);
}
static std::optional<BuiltinCall> describe(KernelOp kernel, ConvolutionInputGradOp op, ConvertOp narrowing = {}) {
  return describeConvolution(kernel, op, "convolution_input_grad", op.getResult(), op.getFilter(), op.getCotangent(),
                             narrowing);
}
static std::optional<BuiltinCall> describe(KernelOp kernel, ConvolutionFilterGradOp op, ConvertOp narrowing = {}) {
  return describeConvolution(kernel, op, "convolution_filter_grad", op.getOperand(), op.getResult(), op.getCotangent(),
                             narrowing);
}

/// The narrowing of a gradient, or of what a convolution gives.
static std::optional<BuiltinCall> describe(KernelOp kernel, ConvertOp op) {
  using Call = std::optional<BuiltinCall>;
  Operation *source = op.getOperand().getDefiningOp();
  if (!source)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Call>(source)
      .Case([&](CrossEntropyGradOp gradient) { return describeGradient(kernel, gradient, op); })
      .Case<ConvolutionOp, ConvolutionInputGradOp, ConvolutionFilterGradOp>(
          [&](auto convolution) { return describe(kernel, convolution, op); })
      .Default([](Operation *) { return Call(); });
}

/// Planes, and the windows over them.
template <typename Op>
static std::optional<SmallVector<int64_t>> poolSizes(Op op, Value input, Value output) {
  ArrayRef<int64_t> in = shapeOf(input), out = shapeOf(output);
  size_t leading = in.size() - op.getWindow().size();
  SmallVector<int64_t> sizes{ShapedType::getNumElements(in.take_front(leading))};
  // Places within a plane are counted in 32 bits.
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

/// The form of an attention builtin for the op's format, and its immediates.
template <typename Op> static CallBuilder attentionCall(KernelOp kernel, Op op, StringRef name) {
  Heads heads(op);
  return CallBuilder(kernel, (name + (heads.element.isBF16() ? "_bf16" : "_f16")).str());
}

template <typename Op> static std::optional<BuiltinCall> finishAttention(CallBuilder &call, Op op) {
  Heads heads(op);
  Value mask = op.getMask();
  SmallVector<int64_t> dims(4, 1);
  if (mask) {
    call.read(mask);
    dims.assign(shapeOf(mask).begin(), shapeOf(mask).end());
  }
  return call
      .integers({heads.batch, heads.heads, heads.groups, heads.queries, heads.keys, heads.width, heads.valueWidth,
                 op.getCausal(), mask != nullptr})
      .reals({real(op.getScaleAttr())})
      .integers(dims)
      .finish();
}

static std::optional<BuiltinCall> describe(KernelOp kernel, AttentionOp op) {
  if (!isLibraryCall(op))
    return std::nullopt;
  CallBuilder call = attentionCall(kernel, op, "attention");
  call.read(op.getQuery()).read(op.getKey()).read(op.getValue()).write(op.getResult()).write(op.getLse());
  return finishAttention(call, op);
}

static std::optional<BuiltinCall> describe(KernelOp kernel, AttentionGradOp op) {
  if (!isLibraryCall(op))
    return std::nullopt;
  CallBuilder call = attentionCall(kernel, op, "attention_backward");
  for (Value operand : op->getOperands().take_front(6))
    call.read(operand);
  for (Value result : op.getResults())
    call.write(result);
  return finishAttention(call, op);
}

std::optional<BuiltinCall> describeBuiltin(KernelOp kernel) {
  // The op before the return; at most a gradient's scaling, what is accumulated, or a widening before that.
  Operation *op = kernel.getTerminator()->getPrevNode();
  if (!op)
    return std::nullopt;
  using Call = std::optional<BuiltinCall>;
  return llvm::TypeSwitch<Operation *, Call>(op)
      .Case<AdamwOp, SgdOp, MomentumOp, CrossEntropyOp, CrossEntropyGradOp, ConvertOp, ReduceOp, GatherOp, ScatterAddOp, AddOp,
            ConvolutionOp, ConvolutionInputGradOp, ConvolutionFilterGradOp, MaxPoolOp, MaxPoolGradOp,
            AttentionOp, AttentionGradOp>(
          [&](auto op) { return describe(kernel, op); })
      .Default([](Operation *) { return Call(); });
}

} // namespace par
