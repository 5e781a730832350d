// Verifiers, type inference and folds of constants and shape ops.
#include "../TensorTypes.h"
#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

static LogicalResult inferred(Value like, ArrayRef<int64_t> shape, SmallVectorImpl<Type> &types) {
  types.push_back(cast<RankedTensorType>(like.getType()).clone(shape));
  return success();
}

//===-- constant, iota -----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  int64_t size = getType().getNumElements();
  if (size > 1024 && !getValue().isSplat())
    return emitOpError() << "has " << size << " elements, expected a splat or at most 1024; use a buffer variable";
  return success();
}

LogicalResult IotaOp::verify() {
  if (getDim() >= static_cast<uint64_t>(getType().getRank()))
    return emitOpError() << "dim is " << getDim() << ", the result has rank " << getType().getRank();
  return success();
}

//===-- broadcast, reshape, transpose --------------------------------------------------------===//

LogicalResult BroadcastInDimOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = getType().getShape();
  if (getDims().size() != from.size())
    return emitOpError() << "has " << getDims().size() << " dims, the operand has rank " << from.size();
  for (auto [i, dim] : llvm::enumerate(getDims())) {
    if (dim < 0 || dim >= static_cast<int64_t>(to.size()) || (i && getDims()[i - 1] >= dim))
      return emitOpError() << "dims must rise strictly within the result's rank " << to.size() << ", dims[" << i
                           << "] is " << dim;
    if (from[i] != 1 && from[i] != to[dim])
      return emitOpError() << "operand dim " << i << " is " << from[i] << ", result dim " << dim << " is " << to[dim];
  }
  return success();
}

OpFoldResult BroadcastInDimOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getOperand()))
    return SplatElementsAttr::get(getType(), splat.getSplatValue<Attribute>());
  return {};
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getOperand().getType());
  if (from.getNumElements() != getType().getNumElements() || from.getElementType() != getType().getElementType())
    return emitOpError() << "turns " << from << " into " << getType() << ", which has other elements";
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto before = getOperand().getDefiningOp<ReshapeOp>()) {
    setOperand(before.getOperand());
    return getResult();
  }
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getOperand()))
    return elements.reshape(getType());
  return {};
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  ArrayRef<int64_t> from = shapeOf(adaptor.getOperand());
  SmallVector<int64_t> shape, seen(from.size(), 0);
  for (int64_t dim : adaptor.getPermutation()) {
    if (dim < 0 || dim >= static_cast<int64_t>(from.size()) || seen[dim]++)
      return emitOptionalError(loc, "permutation does not name each dim of the operand once");
    shape.push_back(from[dim]);
  }
  if (shape.size() != from.size())
    return emitOptionalError(loc, "permutation has ", shape.size(), " dims, the operand has rank ", from.size());
  return inferred(adaptor.getOperand(), shape, types);
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return getOperand();
  return {};
}

//===-- slices -------------------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  ArrayRef<int64_t> from = shapeOf(adaptor.getOperand());
  SmallVector<int64_t> shape;
  if (adaptor.getStarts().size() != from.size() || adaptor.getLimits().size() != from.size() ||
      adaptor.getStrides().size() != from.size())
    return emitOptionalError(loc, "starts, limits and strides must have the operand's rank ", from.size());
  for (auto [size, start, limit, stride] :
       llvm::zip(from, adaptor.getStarts(), adaptor.getLimits(), adaptor.getStrides())) {
    if (start < 0 || start > limit || limit > size || stride < 1)
      return emitOptionalError(loc, "slice [", start, ", ", limit, ") by ", stride, " is not within a dim of ", size);
    shape.push_back((limit - start + stride - 1) / stride);
  }
  return inferred(adaptor.getOperand(), shape, types);
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getOperand()))
    return SplatElementsAttr::get(getType(), splat.getSplatValue<Attribute>());
  return {};
}

LogicalResult DynamicSliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getOperand()));
  int64_t dim = adaptor.getDim(), size = adaptor.getSize();
  if (!shapeOf(adaptor.getStart()).empty())
    return emitOptionalError(loc, "start must be a scalar");
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || size < 0 || size > shape[dim])
    return emitOptionalError(loc, "dim ", dim, " with size ", size, " is not within the operand");
  shape[dim] = size;
  return inferred(adaptor.getOperand(), shape, types);
}

LogicalResult UpdateSliceOp::verify() {
  SmallVector<int64_t> whole(getType().getShape()), part(shapeOf(getUpdate()));
  int64_t dim = getDim();
  if (!shapeOf(getStart()).empty())
    return emitOpError() << "start must be a scalar";
  if (dim < 0 || dim >= static_cast<int64_t>(whole.size()) || part.size() != whole.size() || part[dim] > whole[dim])
    return emitOpError() << "update " << getUpdate().getType() << " does not fit along dim " << dim << " of "
                         << getType();
  part[dim] = whole[dim];
  if (part != whole)
    return emitOpError() << "update " << getUpdate().getType() << " differs from " << getType()
                         << " in another dim than " << dim;
  return success();
}

LogicalResult ReverseOp::verify() {
  for (int64_t dim : getDims())
    if (dim < 0 || dim >= getType().getRank() || llvm::count(getDims(), dim) != 1)
      return emitOpError() << "dims must name different dims of " << getType() << ", found " << dim;
  return success();
}

//===-- pad, concat --------------------------------------------------------------------------===//

LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape(shapeOf(adaptor.getOperand()));
  if (adaptor.getLow().size() != shape.size() || adaptor.getHigh().size() != shape.size())
    return emitOptionalError(loc, "low and high must have the operand's rank ", shape.size());
  for (auto [size, low, high] : llvm::zip(shape, adaptor.getLow(), adaptor.getHigh())) {
    if (low < 0 || high < 0)
      return emitOptionalError(loc, "padding must not be negative; use par.slice");
    size += low + high;
  }
  return inferred(adaptor.getOperand(), shape, types);
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(loc, "needs at least one operand");
  SmallVector<int64_t> shape(shapeOf(adaptor.getInputs().front()));
  int64_t dim = adaptor.getDim();
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
    return emitOptionalError(loc, "dim is ", dim, ", the operands have rank ", shape.size());
  int64_t sum = 0;
  for (Value input : adaptor.getInputs()) {
    SmallVector<int64_t> other(shapeOf(input));
    if (other.size() != shape.size())
      return emitOptionalError(loc, "operands have ranks ", shape.size(), " and ", other.size());
    sum += other[dim];
    other[dim] = shape[dim];
    if (other != shape)
      return emitOptionalError(loc, "operands differ in another dim than ", dim);
  }
  shape[dim] = sum;
  return inferred(adaptor.getInputs().front(), shape, types);
}

} // namespace par
