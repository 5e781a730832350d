#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

/// An i1 tensor of the shape of `type`.
static Type booleansLike(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(IntegerType::get(type.getContext(), 1));
}

LogicalResult IsNanOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  types.push_back(booleansLike(adaptor.getOperands().front().getType()));
  return success();
}

LogicalResult IsFiniteOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  types.push_back(booleansLike(adaptor.getOperands().front().getType()));
  return success();
}

LogicalResult CompareOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  types.push_back(booleansLike(adaptor.getOperands().front().getType()));
  return success();
}

LogicalResult RandomBitsOp::verify() {
  if (!getType().getElementType().isInteger(64))
    return emitOpError() << "result is " << getType() << ", expected elements of i64";
  return success();
}

LogicalResult BitCastOp::verify() {
  Type from = getOperand().getType().getElementType(), to = getType().getElementType();
  if (from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return emitOpError() << "reads the bits of " << from << " as " << to << ", which has another width";
  return success();
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  return {};
}

} // namespace par
