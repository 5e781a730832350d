#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto logits = cast<RankedTensorType>(adaptor.getLogits().getType());
  auto labels = cast<RankedTensorType>(adaptor.getLabels().getType());
  if (logits.getRank() == 0 || logits.getShape().drop_back() != labels.getShape())
    return emitOptionalError(loc, "logits ", logits, " must have the dims of labels ", labels, " and one of classes");
  Type element = logits.getElementType();
  if (element.getIntOrFloatBitWidth() < 32)
    element = Float32Type::get(context);
  auto token = RankedTensorType::get(labels.getShape(), element);
  types.append({token, token});
  return success();
}

} // namespace par
