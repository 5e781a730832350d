// Unsigned integers. The dialect's are signed, so a value holds their bits. An op that reads them is imported in one of
// three ways: unchanged, if the bits of the result are the same (a sum, a gather); with 2^63 flipped, which maps
// unsigned order to signed order; or in the next wider type, which holds all values.
#include "Operands.h"

namespace par {

using namespace mlir;

namespace {

enum class Reading { Own, Bits, Order, Wide };

/// Ops that check the sign themselves, and those that only pass values on.
constexpr StringRef own[] = {"BitCast",
                             "Cast",
                             "CastLike",
                             "ConcatFromSequence",
                             "DequantizeLinear",
                             "If",
                             "Loop",
                             "Optional",
                             "OptionalGetElement",
                             "OptionalHasElement",
                             "Scan",
                             "SequenceAt",
                             "SequenceConstruct",
                             "SequenceEmpty",
                             "SequenceErase",
                             "SequenceInsert",
                             "SequenceLength",
                             "SequenceMap"};
constexpr StringRef bits[] = {"Add",
                              "BitShift",
                              "BitwiseAnd",
                              "BitwiseNot",
                              "BitwiseOr",
                              "BitwiseXor",
                              "CenterCropPad",
                              "Compress",
                              "Concat",
                              "DepthToSpace",
                              "Equal",
                              "Expand",
                              "Flatten",
                              "Gather",
                              "GatherElements",
                              "GatherND",
                              "Identity",
                              "Mul",
                              "Pad",
                              "ReduceSum",
                              "Reshape",
                              "ReverseSequence",
                              "Slice",
                              "SpaceToDepth",
                              "Split",
                              "Squeeze",
                              "Sub",
                              "Sum",
                              "TensorScatter",
                              "Tile",
                              "Transpose",
                              "Trilu",
                              "Unsqueeze",
                              "Where"};
constexpr StringRef order[] = {"ArgMax",      "ArgMin", "Clip", "Greater",   "GreaterOrEqual", "Less",
                               "LessOrEqual", "Max",    "Min",  "ReduceMax", "ReduceMin",      "TopK"};
/// Ops whose result has a type of its own, whatever their operand's.
constexpr StringRef ownResult[] = {"ArgMax", "ArgMin", "EyeLike", "OneHot"};

Reading readingOf(const onnx::Node &node, unsigned width) {
  StringRef op(node.opType);
  if (llvm::is_contained(own, op))
    return Reading::Own;
  if (llvm::is_contained(bits, op))
    return Reading::Bits;
  return width == 64 ? Reading::Order : Reading::Wide;
}

/// A known value in the type that the op is to see.
GraphValue readKnown(const StaticTensor &known, Reading reading, onnx::ElementType wide) {
  StaticTensor read(reading == Reading::Wide ? wide : onnx::ElementType::I64, known.getShape(), known.getStored());
  for (int64_t i = 0; i < known.getStoredCount(); ++i)
    read.setInt(i, reading == Reading::Wide ? known.intAt(i) : int64_t(uint64_t(known.intAt(i)) ^ (uint64_t(1) << 63)));
  return {std::make_shared<StaticTensor>(std::move(read)), {}, {}, false};
}

Value flipSign(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto least = DenseElementsAttr::get(type.clone(ArrayRef<int64_t>()), APInt::getSignedMinValue(64));
  Value constant = ConstantOp::create(builder, loc, least.getType(), least);
  return XorOp::create(builder, loc, value, buildBroadcast(builder, loc, constant, {}, type.getShape()));
}

onnx::ElementType widerOf(unsigned width) {
  return width == 8 ? onnx::ElementType::I16 : width == 16 ? onnx::ElementType::I32 : onnx::ElementType::I64;
}

} // namespace

Value widenUnsigned(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  unsigned width = type.getElementTypeBitWidth();
  Term wide = Term(builder, loc, value).convert(builder.getIntegerType(2 * width));
  return AndOp::create(builder, loc, wide, wide.splat(double((uint64_t(1) << width) - 1)));
}

bool GraphImporter::hasUnsignedInput(const onnx::Node &node) const {
  auto isUnsigned = [](const GraphValue &value) {
    return value.known ? onnx::isUnsigned(value.known->getType()) : value.isUnsigned;
  };
  return llvm::any_of(node.inputs, [&](const std::string &name) {
    auto found = values.find(name);
    return found != values.end() && (isUnsigned(found->second) || llvm::any_of(found->second.sequence, isUnsigned));
  });
}

namespace {

/// Width of the unsigned integers among the inputs; 0 if there are several widths.
unsigned unsignedWidth(NodeImporter &importer) {
  unsigned width = 0;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    const GraphValue *input = importer.value(i);
    if (!input || !importer.isUnsigned(i))
      continue;
    unsigned own = input->known ? 8 * onnx::byteSize(input->known->getType())
                                : cast<RankedTensorType>(input->computed.getType()).getElementTypeBitWidth();
    if (width && own != width)
      return 0;
    width = own;
  }
  return width;
}

Value flipSign(Term x) { return flipSign(x.getBuilder(), x.getLoc(), x); }

/// Quotient of 64 bits: twice the quotient of half the dividend is at most one too small; a divisor from 2^63 on gives
/// 0 or 1.
Term divideLong(Term x, Term y) {
  OpBuilder &builder = x.getBuilder();
  auto atLeast = [&](Term a, Term b) { return a.with(flipSign(a)).compare(Predicate::ge, flipSign(b)); };
  Term odd = x.with(AndOp::create(builder, x.getLoc(), x, x.splat(1)));
  Term half = (x - odd) / 2;
  half = half.compare(Predicate::lt, 0).select(half.with(flipSign(half)), half);
  Term quotient = half / y * 2;
  quotient = quotient + atLeast(x - quotient * y, y).convert(builder.getI64Type());
  return y.compare(Predicate::lt, 0).select(atLeast(x, y).convert(builder.getI64Type()), quotient);
}

LogicalResult importLongDivision(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  Term x = termOf(importer, (*operands)[0]), y = x.with((*operands)[1]), quotient = divideLong(x, y);
  Term result = importer.node.opType == "Div" ? quotient : x - quotient * y;
  return importer.bindUnsigned(importer.reshape(result, operands->finalShape));
}

} // namespace

LogicalResult GraphImporter::importUnsigned(NodeImporter &importer, ImportFunction function) {
  const onnx::Node &node = importer.node;
  unsigned width = unsignedWidth(importer);
  Reading reading = readingOf(node, width);
  if (reading == Reading::Own)
    return function(importer);
  if (width == 64 && (node.opType == "Div" || node.opType == "Mod"))
    return importLongDivision(importer);
  bool reduces = node.attribute("reduction") && node.stringAttribute("reduction", "none") != "none";
  bool longOnes = width == 64 && reading == Reading::Order;
  if (width == 0 || reduces || (longOnes && !llvm::is_contained(order, StringRef(node.opType))))
    return importer.error() << "op " << node.opType << " of " << (width ? "u" + Twine(width) : Twine("mixed widths"))
                            << " is not supported yet";
  size_t lender = node.opType == "Where" ? 1 : 0;
  bool narrows = importer.isUnsigned(lender) && !llvm::is_contained(ownResult, StringRef(node.opType));
  llvm::StringMap<GraphValue> before;
  for (size_t i = 0; i < importer.numInputs(); ++i)
    if (importer.isUnsigned(i) && reading != Reading::Bits &&
        before.try_emplace(node.inputs[i], *importer.value(i)).second) {
      GraphValue &value = values[node.inputs[i]];
      if (value.known)
        value = readKnown(*value.known, reading, widerOf(width));
      else
        value = {nullptr,
                 reading == Reading::Wide ? widenUnsigned(builder, importer.loc, value.computed)
                                          : flipSign(builder, importer.loc, value.computed),
                 {},
                 false};
    }
  LogicalResult result = function(importer);
  if (succeeded(result) && values[node.outputs[0]].isSequence)
    return importer.error() << "op " << node.opType << " of integers without a sign is not supported yet";
  for (auto &entry : before)
    values[entry.first()] = std::move(entry.second);
  if (failed(result) || !narrows)
    return result;
  unsigned readWidth = reading == Reading::Wide ? 2 * width : width;
  for (auto [k, name] : llvm::enumerate(node.outputs)) {
    GraphValue &value = values[name];
    bool lent = value.computed && (k == 0 || reading == Reading::Bits) &&
                cast<RankedTensorType>(value.computed.getType()).getElementType().isSignlessInteger(readWidth);
    if (!lent)
      continue;
    if (reading == Reading::Wide)
      value.computed = buildConvert(builder, importer.loc, value.computed, builder.getIntegerType(width));
    else if (reading == Reading::Order)
      value.computed = flipSign(builder, importer.loc, value.computed);
    value.isUnsigned = true;
  }
  return success();
}

} // namespace par
