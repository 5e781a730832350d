#include "Access.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace par::codegen {

ArrayRef<int64_t> shapeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape(); }

Index applyMap(AffineMap map, ArrayRef<AffineExpr> iteration) {
  Index index;
  for (AffineExpr expr : map.getResults())
    index.push_back(expr.replaceDims(iteration));
  return index;
}

AffineExpr linearize(ArrayRef<AffineExpr> index, ArrayRef<int64_t> shape, MLIRContext *context) {
  AffineExpr address = getAffineConstantExpr(0, context);
  for (auto [expr, size] : llvm::zip(index, shape))
    address = address * size + (size == 1 ? getAffineConstantExpr(0, context) : expr);
  return address;
}

/// The index in `shape` of the element at a row-major address.
static void delinearize(AffineExpr address, ArrayRef<int64_t> shape, Index &index) {
  int64_t behind = 1;
  for (int64_t size : shape)
    behind *= size;
  int64_t all = behind;
  for (int64_t size : shape) {
    behind /= size;
    AffineExpr expr = behind == 1 ? address : address.floorDiv(behind);
    // The first dim other than 1 needs no remainder.
    index.push_back(size == 1              ? getAffineConstantExpr(0, address.getContext())
                    : behind * size == all ? expr
                                           : expr % size);
  }
}

Index reshapeIndex(ArrayRef<AffineExpr> index, ArrayRef<int64_t> from, ArrayRef<int64_t> to, MLIRContext *context) {
  // An empty tensor is never read, its groups of dims need not match, and its sizes of 0 cannot divide.
  if (ShapedType::getNumElements(from) == 0)
    return Index(to.size(), getAffineConstantExpr(0, context));
  Index result;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    // The least group of dims of both shapes with the same number of elements.
    size_t i0 = i, j0 = j;
    int64_t x = i < from.size() ? from[i++] : 1, y = j < to.size() ? to[j++] : 1;
    while (x != y) {
      if (x < y)
        x *= from[i++];
      else
        y *= to[j++];
    }
    ArrayRef<int64_t> fromGroup = from.slice(i0, i - i0), toGroup = to.slice(j0, j - j0);
    if (fromGroup.size() == 1 && toGroup.size() == 1)
      result.push_back(index[i0]);
    else
      delinearize(linearize(index.slice(i0, i - i0), fromGroup, context), toGroup, result);
  }
  return result;
}

AffineExpr traceIndex(Value value, ArrayRef<AffineExpr> iteration, function_ref<AffineExpr(Value)> makeDim) {
  if (auto index = value.getDefiningOp<linalg::IndexOp>())
    return iteration[index.getDim()];
  if (auto constant = value.getDefiningOp<arith::ConstantIndexOp>())
    return getAffineConstantExpr(constant.value(), value.getContext());
  auto trace = [&](Value operand) { return traceIndex(operand, iteration, makeDim); };
  if (auto sum = value.getDefiningOp<arith::AddIOp>())
    return trace(sum.getLhs()) + trace(sum.getRhs());
  if (auto difference = value.getDefiningOp<arith::SubIOp>())
    return trace(difference.getLhs()) - trace(difference.getRhs());
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    if (product.getRhs().getDefiningOp<arith::ConstantIndexOp>())
      return trace(product.getLhs()) * trace(product.getRhs());
  return makeDim(value);
}

Value stripReshapes(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

linalg::GenericOp genericOf(Value value) { return value.getDefiningOp<linalg::GenericOp>(); }

} // namespace par::codegen
