// ONNX's elementwise ops: broadcasting is made explicit.
#include "GraphImporter.h"

#include <cmath>

namespace par {
namespace {

using namespace mlir;

/// Operands of one shape.
struct Operands {
  SmallVector<Value> values;
  Shape finalShape; ///< of the node's result; the values' own where no merge was undone

  Value operator[](size_t i) const { return values[i]; }
  RankedTensorType type(size_t i) const { return cast<RankedTensorType>(values[i].getType()); }
};

FailureOr<Shape> joinShapes(NodeImporter &importer) {
  Shape shape;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    FailureOr<RankedTensorType> type = importer.type(i);
    if (failed(type))
      return failure();
    FailureOr<Shape> joined = broadcastShapes(shape, type->getShape());
    if (failed(joined))
      return importer.error() << "input " << i << " is " << *type << ", which does not broadcast with the others";
    shape = *joined;
  }
  return shape;
}

/// The dims that every operand of full rank merges into its first one; the others must not reach that dim. A batch dim
/// that the exporter flattened thus stays a dim of its own: the merge moves to the result.
Shape commonMerge(NodeImporter &importer, ArrayRef<int64_t> shape) {
  Shape merged;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    const GraphValue *value = importer.value(i);
    auto own = value->known ? value->known->getShape()
                            : cast<RankedTensorType>(value->computed.getType()).getShape();
    if (own.size() < shape.size())
      continue;
    MergedDims found = value->known ? MergedDims() : findMergedDims(value->computed);
    if (!found.inner || own != shape || (!merged.empty() && merged != found.dims))
      return {};
    merged = found.dims;
  }
  return merged;
}

FailureOr<Operands> joinOperands(NodeImporter &importer) {
  FailureOr<Shape> shape = joinShapes(importer);
  if (failed(shape))
    return failure();
  Operands operands{{}, *shape};
  Shape merged = commonMerge(importer, *shape), inner(merged);
  llvm::append_range(inner, ArrayRef(*shape).drop_front(merged.empty() ? 0 : 1));
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    FailureOr<RankedTensorType> own = importer.type(i);
    FailureOr<Value> value = failure();
    if (!merged.empty() && own->getRank() == int64_t(shape->size()))
      value = findMergedDims(importer.value(i)->computed).inner;
    else
      value = importer.stretched(i, inner);
    if (failed(value))
      return failure();
    operands.values.push_back(*value);
  }
  return operands;
}

LogicalResult finish(NodeImporter &importer, Value result, const Operands &operands) {
  return importer.bind(importer.reshape(result, operands.finalShape));
}

/// Operands that all have one element type, of which there are at least `least`.
FailureOr<Operands> sameTypeOperands(NodeImporter &importer, size_t least, bool floats) {
  if (importer.numInputs() < least)
    return importer.error() << "op " << importer.node.opType << " has " << importer.numInputs() << " inputs, expected "
                            << least;
  FailureOr<Operands> operands = joinOperands(importer);
  if (failed(operands))
    return failure();
  for (size_t i = 0; i < operands->values.size(); ++i) {
    if (operands->type(i) != operands->type(0))
      return importer.error() << "input " << i << " is " << operands->type(i).getElementType() << ", input 0 is "
                              << operands->type(0).getElementType();
    if (floats && !isa<FloatType>(operands->type(i).getElementType()))
      return importer.error() << "op " << importer.node.opType << " of " << operands->type(i).getElementType()
                              << " is not supported yet";
  }
  return operands;
}

template <class Op, bool floats>
LogicalResult importUnary(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, floats);
  if (failed(operands))
    return failure();
  Value result = Op::create(importer.builder, importer.loc, operands->type(0), (*operands)[0]);
  return finish(importer, result, *operands);
}

/// Add, Max, Min, ... of two or more operands, from the left.
template <class Op>
LogicalResult importBinary(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, false);
  if (failed(operands))
    return failure();
  Value result = (*operands)[0];
  for (Value next : ArrayRef(operands->values).drop_front())
    result = Op::create(importer.builder, importer.loc, result, next);
  return finish(importer, result, *operands);
}

template <class Op>
LogicalResult importLogical(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, false);
  if (failed(operands))
    return failure();
  if (!isa<IntegerType>(operands->type(0).getElementType()))
    return importer.error() << "op " << importer.node.opType << " of " << operands->type(0).getElementType()
                            << ", expected integers or booleans";
  Value result = (*operands)[0];
  for (Value next : ArrayRef(operands->values).drop_front())
    result = Op::create(importer.builder, importer.loc, result, next);
  return finish(importer, result, *operands);
}

template <Predicate predicate>
LogicalResult importCompare(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 2, false);
  if (failed(operands))
    return failure();
  Value result = CompareOp::create(importer.builder, importer.loc, predicate, (*operands)[0], (*operands)[1]);
  return finish(importer, result, *operands);
}

LogicalResult importNot(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, false);
  if (failed(operands) || !operands->type(0).getElementType().isInteger(1))
    return failed(operands) ? failure() : importer.unsupported("integers");
  Value result = NotOp::create(importer.builder, importer.loc, (*operands)[0]);
  return finish(importer, result, *operands);
}

LogicalResult importIsNan(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, 1, true);
  if (failed(operands))
    return failure();
  Value result = IsNanOp::create(importer.builder, importer.loc, (*operands)[0]);
  return finish(importer, result, *operands);
}

LogicalResult importWhere(NodeImporter &importer) {
  if (importer.numInputs() != 3)
    return importer.error() << "op Where has " << importer.numInputs() << " inputs, expected 3";
  FailureOr<Operands> operands = joinOperands(importer);
  if (failed(operands))
    return failure();
  if (!operands->type(0).getElementType().isInteger(1) || operands->type(1) != operands->type(2))
    return importer.error() << "op Where of " << operands->type(0) << ", " << operands->type(1) << ", "
                            << operands->type(2) << ", expected booleans and two of one type";
  Value result = SelectOp::create(importer.builder, importer.loc, operands->type(1), (*operands)[0], (*operands)[1],
                                  (*operands)[2]);
  return finish(importer, result, *operands);
}

/// Small constant exponents become products and roots, as PyTorch computes them.
LogicalResult importPow(NodeImporter &importer) {
  const StaticTensor *exponent = importer.known(1);
  std::optional<double> power = exponent ? exponent->splat() : std::nullopt;
  FailureOr<RankedTensorType> type = importer.type(0);
  if (failed(type))
    return failure();
  OpBuilder &builder = importer.builder;
  if (power && exponent->getRank() <= type->getRank() && exponent->getElements() == 1 &&
      isa<FloatType>(type->getElementType())) {
    FailureOr<Value> x = importer.tensor(0);
    if (failed(x))
      return failure();
    if (*power == 1)
      return importer.bind(*x);
    if (*power == 0.5)
      return importer.bind(SqrtOp::create(builder, importer.loc, *type, *x));
    if (*power == -0.5)
      return importer.bind(RsqrtOp::create(builder, importer.loc, *type, *x));
    if (*power == -1)
      return importer.bind(ReciprocalOp::create(builder, importer.loc, *type, *x));
    if (*power == 2 || *power == 3) {
      Value result = MultiplyOp::create(builder, importer.loc, *x, *x);
      if (*power == 3)
        result = MultiplyOp::create(builder, importer.loc, result, *x);
      return importer.bind(result);
    }
  }
  FailureOr<Operands> operands = sameTypeOperands(importer, 2, true);
  if (failed(operands))
    return failure();
  Value result = PowerOp::create(builder, importer.loc, (*operands)[0], (*operands)[1]);
  return finish(importer, result, *operands);
}

LogicalResult convertTo(NodeImporter &importer, Type element) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (type.getElementType() == element)
    return importer.bind(*x);
  return importer.bind(ConvertOp::create(importer.builder, importer.loc, type.clone(element), *x));
}

LogicalResult importCast(NodeImporter &importer) {
  OpBuilder &builder = importer.builder;
  auto to = onnx::ElementType(importer.node.intAttribute("to", 0));
  switch (to) {
  case onnx::ElementType::F32: return convertTo(importer, builder.getF32Type());
  case onnx::ElementType::F64: return convertTo(importer, builder.getF64Type());
  case onnx::ElementType::F16: return convertTo(importer, builder.getF16Type());
  case onnx::ElementType::BF16: return convertTo(importer, builder.getBF16Type());
  case onnx::ElementType::I64: return convertTo(importer, builder.getI64Type());
  case onnx::ElementType::I32: return convertTo(importer, builder.getI32Type());
  case onnx::ElementType::Bool: return convertTo(importer, builder.getI1Type());
  default: return importer.unsupported("result type " + onnx::spell(to));
  }
}

LogicalResult importCastLike(NodeImporter &importer) {
  FailureOr<RankedTensorType> like = importer.type(1);
  return failed(like) ? failure() : convertTo(importer, like->getElementType());
}

LogicalResult importIdentity(NodeImporter &importer) {
  const GraphValue *value = importer.value(0);
  if (value && value->isSequence)
    return importer.bindSequence(value->sequence);
  FailureOr<Value> x = importer.tensor(0);
  return failed(x) ? failure() : importer.bind(*x);
}

} // namespace

void addElementwiseImports(ImportTable &table) {
  table["Add"] = importBinary<AddOp>;
  table["Sub"] = importBinary<SubtractOp>;
  table["Mul"] = importBinary<MultiplyOp>;
  table["Div"] = importBinary<DivideOp>;
  table["Sum"] = importBinary<AddOp>;
  table["Max"] = importBinary<MaximumOp>;
  table["Min"] = importBinary<MinimumOp>;
  table["Pow"] = importPow;
  table["And"] = importLogical<AndOp>;
  table["Or"] = importLogical<OrOp>;
  table["Xor"] = importLogical<XorOp>;
  table["Not"] = importNot;
  table["Equal"] = importCompare<Predicate::eq>;
  table["Less"] = importCompare<Predicate::lt>;
  table["LessOrEqual"] = importCompare<Predicate::le>;
  table["Greater"] = importCompare<Predicate::gt>;
  table["GreaterOrEqual"] = importCompare<Predicate::ge>;
  table["Where"] = importWhere;
  table["IsNaN"] = importIsNan;
  table["Neg"] = importUnary<NegateOp, false>;
  table["Abs"] = importUnary<AbsOp, false>;
  table["Sign"] = importUnary<SignOp, false>;
  table["Exp"] = importUnary<ExpOp, true>;
  table["Log"] = importUnary<LogOp, true>;
  table["Sqrt"] = importUnary<SqrtOp, true>;
  table["Reciprocal"] = importUnary<ReciprocalOp, true>;
  table["Tanh"] = importUnary<TanhOp, true>;
  table["Erf"] = importUnary<ErfOp, true>;
  table["Sigmoid"] = importUnary<SigmoidOp, true>;
  table["Sin"] = importUnary<SinOp, true>;
  table["Cos"] = importUnary<CosOp, true>;
  table["Floor"] = importUnary<FloorOp, true>;
  table["Ceil"] = importUnary<CeilOp, true>;
  table["Cast"] = importCast;
  table["CastLike"] = importCastLike;
  table["Identity"] = importIdentity;
}

} // namespace par
