#include "par/Dialect/Lower.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace par {

using utils::IteratorType;

/// linalg.generic with one output and the iterators that `resultMap` implies.
static Value buildGeneric(OpBuilder &builder, Location loc, Value init, ValueRange inputs, ArrayRef<AffineMap> maps,
                          AffineMap resultMap, ElementBody body) {
  SmallVector<AffineMap> all(maps);
  all.push_back(resultMap);
  SmallVector<IteratorType> iterators(resultMap.getNumDims(), IteratorType::reduction);
  for (AffineExpr expr : resultMap.getResults())
    iterators[cast<AffineDimExpr>(expr).getPosition()] = IteratorType::parallel;
  auto build = [&](OpBuilder &nested, Location loc, ValueRange args) {
    linalg::YieldOp::create(nested, loc, body(nested, loc, args));
  };
  auto generic = linalg::GenericOp::create(builder, loc, init.getType(), inputs, init, all, iterators, build);
  return generic.getResult(0);
}

Value buildElements(OpBuilder &builder, Location loc, RankedTensorType type, ValueRange inputs,
                    ArrayRef<AffineMap> maps, ElementBody body) {
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return buildGeneric(builder, loc, init, inputs, maps, builder.getMultiDimIdentityMap(type.getRank()), body);
}

Value buildElements(OpBuilder &builder, Location loc, RankedTensorType type, ValueRange inputs, ElementBody body) {
  SmallVector<AffineMap> maps(inputs.size(), builder.getMultiDimIdentityMap(type.getRank()));
  return buildElements(builder, loc, type, inputs, maps, body);
}

Value buildReduction(OpBuilder &builder, Location loc, RankedTensorType type, TypedAttr start, ValueRange inputs,
                     ArrayRef<AffineMap> maps, AffineMap resultMap, ElementBody body) {
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  if (resultMap.isPermutation()) // nothing is reduced: one step from the start
    return buildGeneric(builder, loc, empty, inputs, maps, resultMap,
                        [&](OpBuilder &nested, Location loc, ValueRange args) {
                          SmallVector<Value> step(args.drop_back());
                          step.push_back(arith::ConstantOp::create(nested, loc, start));
                          return body(nested, loc, step);
                        });
  Value number = arith::ConstantOp::create(builder, loc, start);
  Value init = linalg::FillOp::create(builder, loc, number, empty).getResult(0);
  return buildGeneric(builder, loc, init, inputs, maps, resultMap, body);
}

Value buildIndex(OpBuilder &builder, Location loc, int64_t dim) { return linalg::IndexOp::create(builder, loc, dim); }

Value buildIndexConstant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value buildNumber(OpBuilder &builder, Location loc, Type type, double value) {
  TypedAttr number = isa<FloatType>(type) ? TypedAttr(builder.getFloatAttr(type, value))
                                          : TypedAttr(builder.getIntegerAttr(type, static_cast<int64_t>(value)));
  return arith::ConstantOp::create(builder, loc, number);
}

Value buildPromote(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::ExtSIOp::create(builder, loc, type, value);
}

Value buildSum(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::AddFOp::create(builder, loc, lhs, rhs,
                                 arith::FastMathFlags::reassoc | arith::FastMathFlags::contract);
  return arith::AddIOp::create(builder, loc, lhs, rhs);
}

Value buildProduct(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::MulFOp::create(builder, loc, lhs, rhs, arith::FastMathFlags::contract);
  return arith::MulIOp::create(builder, loc, lhs, rhs);
}

} // namespace par
