// Changes of element type, integers that stand for floats, and identities.
#include "Operands.h"

#include "llvm/Support/raw_ostream.h"

namespace par {
namespace {

using namespace mlir;

/// Integers of 64 bits without a sign as floats: their halves are exact.
Term longToFloat(Term x, Type element) {
  OpBuilder &builder = x.getBuilder();
  double half = 0x1p32;
  Term low = x.with(AndOp::create(builder, x.getLoc(), x, x.splat(half - 1)));
  Term high = (x - low) / half;
  high = high.compare(Predicate::lt, 0).select(high + half, high);
  Type wide = builder.getF64Type();
  return (high.convert(wide) * half + low.convert(wide)).convert(element);
}

/// Converts floats to the bits of unsigned 64-bit integers; numbers from 2^63 on have it subtracted first.
Term floatToLong(Term x) {
  OpBuilder &builder = x.getBuilder();
  Type integer = builder.getI64Type();
  Term large = x.compare(Predicate::ge, 0x1p63);
  Term low = large.select(x - 0x1p63, x), bits = low.convert(integer);
  Term flipped = bits + double(INT64_MIN);
  return large.select(flipped, bits);
}

/// ONNX's numbers name signs, the dialect's types do not.
LogicalResult convertTo(NodeImporter &importer, Type element, bool toUnsigned) {
  FailureOr<Value> input = importer.tensor(0);
  if (failed(input))
    return failure();
  Term x = termOf(importer, *input);
  unsigned width = x.getType().getElementTypeBitWidth();
  bool isLong = importer.isUnsigned(0) && width == 64, fromFloat = isa<FloatType>(x.getType().getElementType());
  if (importer.isUnsigned(0) && !isLong && x.getType().getElementType() != element)
    x = x.with(widenUnsigned(importer.builder, importer.loc, x));
  if (isLong && isa<FloatType>(element))
    x = longToFloat(x, element);
  else if (fromFloat && toUnsigned)
    x = element.isInteger(64) ? floatToLong(x) : x.convert(importer.builder.getI64Type());
  if (x.getType().getElementType() != element)
    x = x.convert(element);
  return toUnsigned ? importer.bindUnsigned(x) : importer.bind(x);
}

LogicalResult importCast(NodeImporter &importer) {
  OpBuilder &builder = importer.builder;
  auto to = onnx::ElementType(importer.node.intAttribute("to", 0));
  bool isUnsigned = onnx::isUnsigned(to);
  switch (to) {
  case onnx::ElementType::F32:
    return convertTo(importer, builder.getF32Type(), false);
  case onnx::ElementType::F64:
    return convertTo(importer, builder.getF64Type(), false);
  case onnx::ElementType::F16:
    return convertTo(importer, builder.getF16Type(), false);
  case onnx::ElementType::BF16:
    return convertTo(importer, builder.getBF16Type(), false);
  case onnx::ElementType::U64:
  case onnx::ElementType::I64:
    return convertTo(importer, builder.getI64Type(), isUnsigned);
  case onnx::ElementType::U32:
  case onnx::ElementType::I32:
    return convertTo(importer, builder.getI32Type(), isUnsigned);
  case onnx::ElementType::U16:
  case onnx::ElementType::I16:
    return convertTo(importer, builder.getI16Type(), isUnsigned);
  case onnx::ElementType::U8:
  case onnx::ElementType::I8:
    return convertTo(importer, builder.getI8Type(), isUnsigned);
  case onnx::ElementType::Bool:
    return convertTo(importer, builder.getI1Type(), false);
  default:
    return importer.unsupported("result type " + onnx::spell(to));
  }
}

LogicalResult importCastLike(NodeImporter &importer) {
  FailureOr<RankedTensorType> like = importer.type(1);
  return failed(like) ? failure() : convertTo(importer, like->getElementType(), importer.isUnsigned(1));
}

APFloat floatOf(onnx::ElementType type, double value) {
  const llvm::fltSemantics &semantics = type == onnx::ElementType::F64   ? APFloat::IEEEdouble()
                                        : type == onnx::ElementType::F32 ? APFloat::IEEEsingle()
                                        : type == onnx::ElementType::F16 ? APFloat::IEEEhalf()
                                                                         : APFloat::BFloat();
  APFloat number(value);
  bool inexact = false;
  number.convert(semantics, APFloat::rmNearestTiesToEven, &inexact);
  return number;
}

/// The elements of a known tensor under another type of as many bits.
StaticTensor castBits(const StaticTensor &from, onnx::ElementType to) {
  StaticTensor result(to, from.getShape(), from.getStored());
  unsigned width = 8 * onnx::byteSize(to);
  for (int64_t i = 0; i < from.getStoredCount(); ++i) {
    APInt bits = from.isFloat() ? floatOf(from.getType(), from.floatAt(i)).bitcastToAPInt()
                                : APInt(width, uint64_t(from.intAt(i)), false, true);
    if (result.isFloat())
      result.set(i, APFloat(floatOf(to, 0).getSemantics(), bits).convertToDouble());
    else
      result.setInt(i, bits.getSExtValue());
  }
  return result;
}

/// Integers of one width differ only in their sign.
LogicalResult importBitCast(NodeImporter &importer) {
  FailureOr<RankedTensorType> type = importer.type(0);
  if (failed(type))
    return failure();
  auto to = onnx::ElementType(importer.node.intAttribute("to", 0));
  bool fromBool = type->getElementType().isInteger(1);
  unsigned width = fromBool ? 8 : type->getElementTypeBitWidth();
  if (8 * onnx::byteSize(to) != width || to == onnx::ElementType::Bool)
    return importer.error() << "casts the bits of " << *type << " to " << onnx::spell(to)
                            << ", expected another type of " << width << " bits";
  if (const StaticTensor *known = importer.known(0))
    return importer.bindValue(GraphValue{std::make_shared<StaticTensor>(castBits(*known, to)), {}, {}, false});
  FailureOr<Value> x = importer.tensor(0);
  FailureOr<Type> element =
      onnx::isUnsigned(to) ? FailureOr<Type>(importer.builder.getIntegerType(width)) : importer.elementType("to");
  if (failed(x) || failed(element))
    return failure();
  Value bits = fromBool ? buildConvert(importer.builder, importer.loc, *x, importer.builder.getI8Type()) : *x;
  auto bitsType = cast<RankedTensorType>(bits.getType());
  if (bitsType.getElementType() != *element)
    bits = BitCastOp::create(importer.builder, importer.loc, bitsType.clone(*element), bits);
  return onnx::isUnsigned(to) ? importer.bindUnsigned(bits) : importer.bind(bits);
}

/// Element types that one input of DequantizeLinear may have; fp8 and 4 bits are no types of the dialect.
bool isQuantized(NodeImporter &importer, size_t i, RankedTensorType type) {
  Type element = type.getElementType();
  return element.isInteger(8) || element.isInteger(16) || (element.isInteger(32) && !importer.isUnsigned(i));
}

/// u8 of integers without a sign.
std::string spellElement(Type element, bool isUnsigned = false) {
  std::string text;
  llvm::raw_string_ostream(text) << element;
  if (isUnsigned)
    text.front() = 'u';
  return text;
}

/// Input i as integers with a sign that hold every difference of two of them.
Term differable(NodeImporter &importer, size_t i, Term x) {
  bool is32 = x.getType().getElementType().isInteger(32);
  if (importer.isUnsigned(i))
    x = x.with(widenUnsigned(importer.builder, importer.loc, x));
  return x.convert(importer.builder.getIntegerType(is32 ? 64 : 32));
}

/// One number for each `block` elements of `shape` along `axis`.
FailureOr<Value> spreadBlocks(NodeImporter &importer, size_t i, Term x, int64_t axis, ArrayRef<int64_t> shape) {
  int64_t block = importer.node.intAttribute("block_size", 0), size = shape[axis];
  if (block <= 0)
    return importer.error() << "input " << i << " is " << x.getType()
                            << ", expected one number, or a vector along one dim, or a block_size above 0";
  block = std::min(block, std::max<int64_t>(size, 1));
  Shape expected(shape), apart(shape);
  expected[axis] = llvm::divideCeil(size, block);
  if (x.getShape() != ArrayRef<int64_t>(expected))
    return importer.error() << "input " << i << " is " << x.getType() << ", expected " << x.getType().clone(expected)
                            << " for blocks of " << block << " along dim " << axis;
  apart[axis] = block;
  apart.insert(apart.begin() + axis, expected[axis]);
  SmallVector<int64_t> dims = dimRange(0, axis + 1);
  llvm::append_range(dims, dimRange(axis + 2, int64_t(apart.size())));
  Shape joined(shape);
  joined[axis] = expected[axis] * block;
  Value spread = x.broadcast(dims, apart).reshape(joined);
  return joined[axis] == size ? spread : importer.slice(spread, axis, 0, size);
}

/// Input i over all elements of input 0: one number, one for each index along `axis`, or one for each block there.
FailureOr<Value> spread(NodeImporter &importer, size_t i, Term x, ArrayRef<int64_t> shape) {
  if (x.getShape().size() <= 1 && countElements(x.getShape()) == 1)
    return Value(x.reshape({}).broadcast(shape));
  FailureOr<int64_t> axis = importer.dim("axis", 1, int64_t(shape.size()));
  if (failed(axis))
    return failure();
  if (x.getShape().size() != 1 || importer.node.intAttribute("block_size", 0) != 0)
    return spreadBlocks(importer, i, x, *axis, shape);
  if (x.getShape()[0] != shape[*axis])
    return importer.error() << "input " << i << " has " << x.getShape()[0] << " elements, input 0 has " << shape[*axis]
                            << " along dim " << *axis;
  return Value(x.broadcast({*axis}, shape));
}

/// Differences are exact in integers; they are multiplied in f32 (f64 by a scale of f64) whatever the result's type,
/// which may hold fewer.
LogicalResult importDequantize(NodeImporter &importer) {
  FailureOr<Value> input = importer.tensor(0), scale = importer.tensor(1);
  if (failed(input) || failed(scale))
    return failure();
  Term x = termOf(importer, *input), factor = x.with(*scale);
  Type result = factor.getType().getElementType();
  Type wide = result.isF64() ? result : importer.builder.getF32Type();
  if (importer.node.intAttribute("output_dtype", 0) != 0) {
    FailureOr<Type> named = importer.elementType("output_dtype");
    if (failed(named))
      return failure();
    result = *named;
  }
  if (!isQuantized(importer, 0, x.getType()) || !isa<FloatType>(factor.getType().getElementType()) ||
      !isa<FloatType>(result))
    return importer.error() << "dequantizes " << spellElement(x.getType().getElementType(), importer.isUnsigned(0))
                            << " by " << spellElement(factor.getType().getElementType()) << " to "
                            << spellElement(result) << ", expected integers of 8 or 16 bits or i32, and floats";
  FailureOr<Value> factors = spread(importer, 1, factor.convert(wide), x.getShape());
  if (failed(factors))
    return failure();
  Term number = x;
  if (importer.has(2)) {
    FailureOr<Value> zero = importer.tensor(2);
    if (failed(zero))
      return failure();
    Term origin = x.with(*zero);
    std::string own = spellElement(x.getType().getElementType(), importer.isUnsigned(0));
    std::string given = spellElement(origin.getType().getElementType(), importer.isUnsigned(2));
    if (own != given)
      return importer.error() << "the zero point is of " << given << ", expected " << own << ", as input 0";
    FailureOr<Value> origins = spread(importer, 2, differable(importer, 2, origin), x.getShape());
    if (failed(origins))
      return failure();
    number = differable(importer, 0, x) - x.with(*origins);
  } else if (importer.isUnsigned(0)) {
    number = x.with(widenUnsigned(importer.builder, importer.loc, x));
  }
  return importer.bind((number.convert(wide) * x.with(*factors)).convert(result));
}

/// The same value. For PyTorch's `detach`, which is exported as Identity, it stops the gradient.
LogicalResult importIdentity(NodeImporter &importer) {
  const GraphValue *value = importer.value(0);
  if (value && value->isSequence)
    return importer.bindSequence(value->sequence);
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  bool detaches = StringRef(importer.node.torchOp).starts_with("aten.detach");
  return importer.bind(detaches ? importer.stopGradient(*x) : *x);
}

} // namespace

void addCastImports(ImportTable &table) {
  table["BitCast"] = importBitCast;
  table["Cast"] = importCast;
  table["CastLike"] = importCastLike;
  table["DequantizeLinear"] = importDequantize;
  table["Identity"] = importIdentity;
}

} // namespace par
