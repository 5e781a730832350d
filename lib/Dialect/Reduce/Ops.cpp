#include "par/Dialect/CheckDim.h"
#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getOperand().getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : adaptor.getDims())
    if (dim < 0 || dim >= type.getRank() || llvm::count(adaptor.getDims(), dim) != 1)
      return emitOptionalError(loc, "dims must name different dims of ", type, ", found ", dim);
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(adaptor.getDims(), static_cast<int64_t>(dim)))
      shape.push_back(size);
  types.push_back(type.clone(shape));
  return success();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  if (getDims().empty())
    return getOperand();
  return {};
}

LogicalResult SortedPositionOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t dim = adaptor.getDim();
  if (failed(checkDim(loc, dim, type.getRank())))
    return failure();
  types.push_back(type.clone(IntegerType::get(context, 64)));
  return success();
}

LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t dim = adaptor.getDim();
  if (failed(checkDim(loc, dim, type.getRank())))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

} // namespace par
