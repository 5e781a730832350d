#include "par/Dialect/Par.h"
#include "par/Phases/Decompose/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_FLATTENCOLLECTIVESPASS
#include "par/Phases/Decompose/Passes.h.inc"

/// The value with dim `from` moved to place `to`.
static Value moveDim(OpBuilder &builder, Location loc, Value value, int64_t from, int64_t to) {
  if (from == to)
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> order, shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != from)
      order.push_back(dim);
  order.insert(order.begin() + to, from);
  for (int64_t dim : order)
    shape.push_back(type.getDimSize(dim));
  // Past dims of one element nothing moves.
  ArrayRef<int64_t> passed =
      from < to ? type.getShape().slice(from + 1, to - from) : type.getShape().slice(to, from - to);
  if (llvm::all_of(passed, [](int64_t size) { return size == 1; }))
    return buildReshape(builder, loc, value, shape);
  return TransposeOp::create(builder, loc, type.clone(shape), value, order);
}

/// [.., P * s, ..] becomes [P, .., s, ..].
static Value splitToFront(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t parts) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  shape[dim] /= parts;
  shape.insert(shape.begin() + dim, parts);
  return moveDim(builder, loc, buildReshape(builder, loc, value, shape), dim, 0);
}

/// [P, .., s, ..] becomes [.., P * s, ..].
static Value joinFromFront(OpBuilder &builder, Location loc, Value value, int64_t dim) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape().drop_front());
  shape[dim] *= cast<RankedTensorType>(value.getType()).getDimSize(0);
  return buildReshape(builder, loc, moveDim(builder, loc, value, 0, dim), shape);
}

static RankedTensorType withFront(Value value, int64_t front) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = front;
  return type.clone(shape);
}

static bool anyInner(ArrayRef<int64_t> dims) {
  return llvm::any_of(dims, [](int64_t dim) { return dim != 0; });
}

static Value addFront(OpBuilder &builder, Location loc, Value value) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  shape.insert(shape.begin(), 1);
  return buildReshape(builder, loc, value, shape);
}

static int64_t groupSize(Operation *op, ArrayAttr axes) {
  return getMesh(op, op->getParentOfType<FragmentOp>().getStageAttr()).getSize(getAxes(axes));
}

static void flatten(AllGatherOp gather) {
  if (!anyInner(gather.getDims()))
    return;
  OpBuilder builder(gather);
  int64_t members = groupSize(gather, gather.getAxes());
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  for (Value input : gather.getInputs()) {
    inputs.push_back(addFront(builder, gather.getLoc(), input));
    types.push_back(withFront(inputs.back(), members));
  }
  SmallVector<int64_t> zeros(inputs.size(), 0);
  auto flat = AllGatherOp::create(builder, gather.getLoc(), types, inputs, zeros, gather.getAxes());
  for (auto [dim, from, to] : llvm::zip(gather.getDims(), flat.getResults(), gather.getResults()))
    to.replaceAllUsesWith(joinFromFront(builder, gather.getLoc(), from, dim));
  gather.erase();
}

static void flatten(ReduceScatterOp scatter) {
  if (!anyInner(scatter.getDims()))
    return;
  OpBuilder builder(scatter);
  int64_t members = groupSize(scatter, scatter.getAxes());
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  for (auto [input, dim] : llvm::zip(scatter.getInputs(), scatter.getDims())) {
    inputs.push_back(splitToFront(builder, scatter.getLoc(), input, dim, members));
    types.push_back(withFront(inputs.back(), 1));
  }
  SmallVector<int64_t> zeros(inputs.size(), 0);
  auto flat =
      ReduceScatterOp::create(builder, scatter.getLoc(), types, inputs, scatter.getKind(), zeros, scatter.getAxes());
  for (auto [from, to] : llvm::zip(flat.getResults(), scatter.getResults()))
    to.replaceAllUsesWith(
        buildReshape(builder, scatter.getLoc(), from, cast<RankedTensorType>(to.getType()).getShape()));
  scatter.erase();
}

static void flatten(AllToAllOp exchange) {
  if (!anyInner(exchange.getSplitDims()) && !anyInner(exchange.getConcatDims()))
    return;
  OpBuilder builder(exchange);
  int64_t members = groupSize(exchange, exchange.getAxes());
  SmallVector<Value> inputs;
  for (auto [input, dim] : llvm::zip(exchange.getInputs(), exchange.getSplitDims()))
    inputs.push_back(splitToFront(builder, exchange.getLoc(), input, dim, members));
  SmallVector<int64_t> zeros(inputs.size(), 0);
  auto flat = AllToAllOp::create(builder, exchange.getLoc(), TypeRange(ValueRange(inputs)), inputs, zeros, zeros,
                                 exchange.getAxes());
  for (auto [dim, from, to] : llvm::zip(exchange.getConcatDims(), flat.getResults(), exchange.getResults()))
    to.replaceAllUsesWith(joinFromFront(builder, exchange.getLoc(), from, dim));
  exchange.erase();
}

namespace {
struct FlattenCollectivesPass : impl::FlattenCollectivesPassBase<FlattenCollectivesPass> {
  void runOnOperation() override {
    for (FragmentOp fragment : getOperation().getOps<FragmentOp>())
      for (Operation &op : llvm::make_early_inc_range(fragment.getBlock()))
        llvm::TypeSwitch<Operation *>(&op).Case<AllGatherOp, ReduceScatterOp, AllToAllOp>(
            [](auto collective) { flatten(collective); });
  }
};
} // namespace

} // namespace par
