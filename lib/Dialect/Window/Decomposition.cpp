#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Term.h"
#include "par/Dialect/Windows.h"

#include <limits>

using namespace mlir;

namespace par {

TypedAttr getSmallest(OpBuilder &builder, Type element) {
  if (isa<FloatType>(element))
    return builder.getFloatAttr(element, -std::numeric_limits<double>::infinity());
  unsigned width = element.getIntOrFloatBitWidth();
  return builder.getIntegerAttr(element, width == 1 ? APInt::getZero(1) : APInt::getSignedMinValue(width));
}

Value buildPatches(OpBuilder &builder, Location loc, Value operand, const Windows &windows, TypedAttr value) {
  auto type = cast<RankedTensorType>(operand.getType());
  SmallVector<int64_t> shape(type.getShape().drop_back(windows.rank()));
  llvm::append_range(shape, windows.counts(type.getShape().take_back(windows.rank())));
  llvm::append_range(shape, windows.size);
  return PatchesOp::create(builder, loc, type.clone(shape), operand, windows.size, windows.strides, windows.low,
                           windows.high, windows.dilations, value);
}

/// The dims of the window at the end of `patches`, as one.
static Term joinWindow(Term patches, const Windows &windows) {
  SmallVector<int64_t> shape(patches.getShape().drop_back(windows.rank()));
  shape.push_back(windows.elements());
  return patches.reshape(shape);
}

Value buildFirstLargest(OpBuilder &builder, Location loc, Value operand, Value largest, const Windows &windows) {
  Term patches(
      builder, loc,
      buildPatches(builder, loc, operand, windows, getSmallest(builder, getElementTypeOrSelf(operand.getType()))));
  patches = joinWindow(patches, windows);
  ArrayRef<int64_t> shape = patches.getShape();
  int64_t last = int64_t(shape.size()) - 1;
  auto spread = [&](Term term) { return term.broadcast(dimRange(0, last), shape); };
  Term equal = patches.compare(Predicate::eq, spread(patches.with(largest)));
  auto places = RankedTensorType::get(shape, builder.getI32Type());
  Term place = patches.with(IotaOp::create(builder, loc, places, last));
  Term first = equal.select(place, place.splat(windows.elements())).reduce(ReduceKind::min, last);
  return place.compare(Predicate::eq, spread(first));
}

namespace {

/// The largest element of every window.
Value buildLargest(OpBuilder &builder, Location loc, Value operand, const Windows &windows) {
  TypedAttr smallest = getSmallest(builder, getElementTypeOrSelf(operand.getType()));
  Term patches(builder, loc, buildPatches(builder, loc, operand, windows, smallest));
  int64_t rank = patches.getType().getRank();
  return patches.reduce(ReduceKind::max, dimRange(rank - windows.rank(), rank));
}

struct MaxPoolDecomposition : DecomposableOpInterface::ExternalModel<MaxPoolDecomposition, MaxPoolOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto pool = cast<MaxPoolOp>(op);
    return {buildLargest(builder, op->getLoc(), pool.getOperand(), Windows::of(pool, pool.getWindow()))};
  }
};

struct MaxPoolGradDecomposition : DecomposableOpInterface::ExternalModel<MaxPoolGradDecomposition, MaxPoolGradOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto grad = cast<MaxPoolGradOp>(op);
    Windows windows = Windows::of(grad, grad.getWindow());
    // Computed from the operand as it is here, as that may have been recomputed since the result was saved.
    Value largest = buildLargest(builder, op->getLoc(), grad.getOperand(), windows);
    Term first(builder, op->getLoc(), buildFirstLargest(builder, op->getLoc(), grad.getOperand(), largest, windows));
    ArrayRef<int64_t> shape = first.getShape();
    Term ct = first.with(grad.getCotangent()).broadcast(dimRange(0, int64_t(shape.size()) - 1), shape);
    SmallVector<int64_t> apart(shape.drop_back());
    llvm::append_range(apart, windows.size);
    Value picked = first.select(ct, ct.splat(0)).reshape(apart);
    return {FoldPatchesOp::create(builder, op->getLoc(), grad.getType(), picked, windows.strides, windows.low,
                                  windows.high, windows.dilations)};
  }
};

} // namespace

void registerWindowDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<MaxPoolOp, MaxPoolDecomposition>(*context);
    attachOnce<MaxPoolGradOp, MaxPoolGradDecomposition>(*context);
  });
}

} // namespace par
