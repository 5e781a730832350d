// ONNX's elementwise ops: broadcasting is made explicit.
#include "DropPath.h"
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

template <class Op, bool floats>
LogicalResult importUnary(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, floats);
  if (failed(operands))
    return failure();
  Value result = Op::create(importer.builder, importer.loc, operands->type(0), (*operands)[0]);
  return bindElements(importer, result, *operands);
}

/// Add, Max, Min, ... of two or more operands, from the left.
template <class Op>
LogicalResult importBinary(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  Value result = (*operands)[0];
  for (Value next : ArrayRef(operands->values).drop_front())
    result = Op::create(importer.builder, importer.loc, result, next);
  if constexpr (std::is_same_v<Op, MultiplyOp> || std::is_same_v<Op, DivideOp>) {
    FailureOr<Value> kept = keepWhereNotTrained(importer, result);
    return failed(kept) ? failure() : bindElements(importer, *kept, *operands);
  }
  return bindElements(importer, result, *operands);
}

LogicalResult importMean(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, true);
  if (failed(operands))
    return failure();
  Term sum = termOf(importer, (*operands)[0]);
  for (Value next : ArrayRef(operands->values).drop_front())
    sum = sum + sum.with(next);
  return bindElements(importer, sum / double(operands->values.size()), *operands);
}

template <class Op>
LogicalResult importLogical(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  if (!isa<IntegerType>(operands->type(0).getElementType()))
    return importer.error() << "op " << importer.node.opType << " of " << operands->type(0).getElementType()
                            << ", expected integers or booleans";
  Value result = (*operands)[0];
  for (Value next : ArrayRef(operands->values).drop_front())
    result = Op::create(importer.builder, importer.loc, result, next);
  return bindElements(importer, result, *operands);
}

template <Predicate predicate>
LogicalResult importCompare(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands))
    return failure();
  Value result = CompareOp::create(importer.builder, importer.loc, predicate, (*operands)[0], (*operands)[1]);
  return bindElements(importer, result, *operands);
}

LogicalResult importNot(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, false);
  if (failed(operands) || !operands->type(0).getElementType().isInteger(1))
    return failed(operands) ? failure() : importer.unsupported("integers");
  Value result = NotOp::create(importer.builder, importer.loc, (*operands)[0]);
  return bindElements(importer, result, *operands);
}

LogicalResult importIsNan(NodeImporter &importer) {
  FailureOr<Operands> operands = sameTypeOperands(importer, true);
  if (failed(operands))
    return failure();
  Value result = IsNanOp::create(importer.builder, importer.loc, (*operands)[0]);
  return bindElements(importer, result, *operands);
}

LogicalResult importWhere(NodeImporter &importer) {
  FailureOr<Operands> operands = joinOperands(importer);
  if (failed(operands))
    return failure();
  if (!operands->type(0).getElementType().isInteger(1) || operands->type(1) != operands->type(2))
    return importer.error() << "op Where of " << operands->type(0) << ", " << operands->type(1) << ", "
                            << operands->type(2) << ", expected booleans and two of one type";
  Value condition = (*operands)[0], onTrue = (*operands)[1], onFalse = (*operands)[2], result;
  const StaticTensor *given = importer.known(0);
  if (std::optional<double> known =
          given ? given->splat() : std::nullopt) // a mask that hides nothing of a model's sizes, say
    result = *known != 0 ? onTrue : onFalse;
  else
    result = SelectOp::create(importer.builder, importer.loc, operands->type(1), condition, onTrue, onFalse);
  return bindElements(importer, result, *operands);
}

} // namespace

void addElementwiseImports(ImportTable &table) {
  table["Add"] = importBinary<AddOp>;
  table["Sub"] = importBinary<SubtractOp>;
  table["Mul"] = importBinary<MultiplyOp>;
  table["Div"] = importBinary<DivideOp>;
  table["Sum"] = importBinary<AddOp>;
  table["Mean"] = importMean;
  table["BitwiseAnd"] = importLogical<AndOp>;
  table["BitwiseOr"] = importLogical<OrOp>;
  table["BitwiseXor"] = importLogical<XorOp>;
  table["Max"] = importBinary<MaximumOp>;
  table["Min"] = importBinary<MinimumOp>;
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
}

} // namespace par
