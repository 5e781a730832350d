#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

LogicalResult SoftmaxOp::verify() {
  if (getDim() >= static_cast<uint64_t>(getType().getRank()))
    return emitOpError() << "dim is " << getDim() << ", the operand has rank " << getType().getRank();
  return success();
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getOperand().getType());
  auto scale = cast<RankedTensorType>(adaptor.getScale().getType());
  if (scale.getRank() > type.getRank() || type.getShape().take_back(scale.getRank()) != scale.getShape() ||
      adaptor.getBias().getType() != scale)
    return emitOptionalError(loc, "scale ", scale, " and bias ", adaptor.getBias().getType(),
                             " must have the shape of the trailing dims of ", type);
  Type statistic = type.getElementType();
  if (statistic.getIntOrFloatBitWidth() < 32)
    statistic = Float32Type::get(context);
  auto leading = RankedTensorType::get(type.getShape().drop_back(scale.getRank()), statistic);
  types.append({type, leading, leading});
  return success();
}

} // namespace par
