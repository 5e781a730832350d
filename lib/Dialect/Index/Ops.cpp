#include "../TensorTypes.h"
#include "par/Dialect/CheckDim.h"
#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType type = typeOf(adaptor.getOperand());
  int64_t dim = adaptor.getDim();
  if (failed(checkDim(loc, dim, type.getRank())))
    return failure();
  SmallVector<int64_t> shape(type.getShape().take_front(dim));
  llvm::append_range(shape, typeOf(adaptor.getIndices()).getShape());
  llvm::append_range(shape, type.getShape().drop_front(dim + 1));
  types.push_back(type.clone(shape));
  return success();
}

LogicalResult IndexAddOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  RankedTensorType type = typeOf(adaptor.getUpdates());
  ArrayRef<int64_t> indices = typeOf(adaptor.getIndices()).getShape();
  int64_t dim = adaptor.getDim(), indexRank = indices.size();
  if (dim < 0 || dim + indexRank > type.getRank() || type.getShape().slice(dim, indexRank) != indices)
    return emitOptionalError(loc, "updates ", type, " do not hold the indices' dims at dim ", dim);
  SmallVector<int64_t> shape(type.getShape().take_front(dim));
  shape.push_back(adaptor.getSize());
  llvm::append_range(shape, type.getShape().drop_front(dim + indexRank));
  types.push_back(type.clone(shape));
  return success();
}

/// Operand and indices agree in all dims but `dim`.
static LogicalResult checkAlong(std::optional<Location> loc, RankedTensorType operand, RankedTensorType indices,
                                int64_t dim) {
  if (failed(checkDim(loc, dim, operand.getRank())))
    return failure();
  SmallVector<int64_t> left(operand.getShape()), right(indices.getShape());
  if (left.size() == right.size())
    right[dim] = left[dim];
  if (left != right)
    return emitOptionalError(loc, "operand ", operand, " and indices ", indices, " must agree in all dims but ", dim);
  return success();
}

LogicalResult TakeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  RankedTensorType type = typeOf(adaptor.getOperand()), indices = typeOf(adaptor.getIndices());
  if (failed(checkAlong(loc, type, indices, adaptor.getDim())))
    return failure();
  types.push_back(type.clone(indices.getShape()));
  return success();
}

/// Updates go where indices of their shape point along a dim, which becomes `size` long.
template <class Adaptor>
static LogicalResult inferPut(std::optional<Location> loc, Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType type = typeOf(adaptor.getUpdates()), indices = typeOf(adaptor.getIndices());
  if (type.getShape() != indices.getShape())
    return emitOptionalError(loc, "updates ", type, " and indices ", indices, " must have one shape");
  if (failed(checkDim(loc, adaptor.getDim(), type.getRank())))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  shape[adaptor.getDim()] = adaptor.getSize();
  types.push_back(type.clone(shape));
  return success();
}

LogicalResult ScatterAddOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  return inferPut(loc, adaptor, types);
}

LogicalResult ScatterReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  return inferPut(loc, adaptor, types);
}

} // namespace par
