// Rebuilds a step as loops over microbatches by the classes of BatchTimes.h: ops on slices get the divided batch dim,
// sums accumulate, and values needed whole are stacked after the loop.
#include "BatchTimes.h"

#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Split/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_SLICEMICROBATCHESPASS
#include "par/Phases/Split/Passes.h.inc"

namespace {

/// Builds the new body of one step beside the old one, place by place.
class StepSlicer {
public:
  StepSlicer(StepOp step, int64_t microbatches, BatchTimes times)
      : step(step), count(microbatches), times(std::move(times)), builder(step.getContext()) {}

  LogicalResult run();

private:
  /// One of the two loops while it is built.
  struct Loop {
    Block *body = nullptr;
    DenseMap<Value, Value> map; ///< old value -> value in the body
    DenseMap<std::tuple<Value, int64_t, int64_t>, Value>
        slices;                                      ///< slices of invariant values along a dim, as BatchTime says
    SmallVector<std::pair<Value, YieldKind>> yields; ///< old values that come out
    LoopOp op;
  };

  SmallVector<Value> batched();
  FailureOr<RankedTensorType> spreadType(Location loc, RankedTensorType type);
  LogicalResult spreadCarried();
  void emitRead(ReadOp read);
  void emitBehind(Operation *op);
  void open(Loop &loop);
  void close(Loop &loop);
  Value placeInLoop(Loop &loop, Value old);
  Value joinSlices(Value old, Value slices);
  LogicalResult emitInLoop(Loop &loop, Operation *op);
  Value valueInLoop(Loop &loop, Value old);
  FailureOr<Value> sliceInvariant(Loop &loop, Value old, int64_t dim, int64_t outer);
  Value cutSlice(Loop &loop, Value old, int64_t dim, int64_t outer);
  FailureOr<SmallVector<Value>> localizeInLoop(Loop &loop, Operation *op, std::optional<BatchFactor> batch,
                                               const ShardingRule &rule);
  void emitOutside(Operation *op);
  void yieldFrom(Loop &loop, Value old, YieldKind kind);
  LogicalResult addInputs(Block &fresh);
  void yieldWhatLeaves(Block &old);
  LogicalResult emitAll(Block &old, Block &fresh);
  FailureOr<Value> resultOf(OpOperand &returned);
  Type sliceType(Type type, int64_t dim) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    if (dim >= 0)
      shape[dim] /= count;
    return tensor.clone(shape);
  }

  StepOp step;
  int64_t count;
  BatchTimes times;
  OpBuilder builder;
  Loop dataLoop, mainLoop;
  DenseMap<Value, Value> outside; ///< old value -> value before and after the loops
  DenseMap<Value, Value> stacked; ///< old value -> loop result that stacks its microbatches
  DenseSet<Value> collected;      ///< old values whose microbatches are needed together after the loop
  SmallVector<Operation *> behindOps;
};

} // namespace

/// Values that a loop slices: inputs, and carried values of which each microbatch has its own part.
SmallVector<Value> StepSlicer::batched() {
  SmallVector<Value> values;
  for (BlockArgument argument : step.getBlock().getArguments())
    if (times.of(argument).time == Time::Sliced)
      values.push_back(argument);
  if (count > 1)
    for (ReadOp read : step.getBlock().getOps<ReadOp>())
      if (times.variables.isCarried(read) && times.of(read).time == Time::Sliced)
        values.push_back(read);
  return values;
}

void StepSlicer::open(Loop &loop) {
  loop.body = new Block;
  loop.body->addArgument(RankedTensorType::get({}, builder.getI64Type()), step.getLoc());
  for (Value value : batched())
    loop.map[value] = loop.body->addArgument(sliceType(value.getType(), times.of(value).dim), value.getLoc());
}

void StepSlicer::yieldFrom(Loop &loop, Value old, YieldKind kind) {
  if (!llvm::is_contained(loop.yields, std::pair(old, kind)))
    loop.yields.push_back({old, kind});
}

/// The value in the loop's body; values from outside are used as they are.
Value StepSlicer::valueInLoop(Loop &loop, Value old) {
  if (Value found = loop.map.lookup(old))
    return found;
  return outside.lookup(old);
}

/// This microbatch's slice of a whole value, whose dim `dim` has `outer` elements before the batch.
Value StepSlicer::cutSlice(Loop &loop, Value old, int64_t dim, int64_t outer) {
  Value whole = valueInLoop(loop, old);
  Location loc = old.getLoc();
  SmallVector<int64_t> shape(cast<RankedTensorType>(whole.getType()).getShape()), cut(shape);
  int64_t size = shape[dim] / outer / count, at = dim;
  if (outer > 1) { // (outer batch) becomes outer, batch
    cut[dim] /= outer;
    cut.insert(cut.begin() + at++, outer);
    whole = buildReshape(builder, loc, whole, cut);
  }
  Value step = buildSplat(builder, loc, RankedTensorType::get({}, builder.getI64Type()), size);
  Value start = MultiplyOp::create(builder, loc, loop.body->getArgument(0), step);
  Value slice = DynamicSliceOp::create(builder, loc, whole, start, at, size);
  shape[dim] /= count;
  return buildReshape(builder, loc, slice, shape);
}

/// A slice of a value that is the same for every microbatch but has the batch dim: its op is recomputed at the smaller
/// size if its rule allows that, else the microbatch's part is a slice.
FailureOr<Value> StepSlicer::sliceInvariant(Loop &loop, Value old, int64_t dim, int64_t outer) {
  auto [at, inserted] = loop.slices.try_emplace({old, dim, outer}, Value());
  if (!inserted)
    return at->second;
  Operation *op = old.getDefiningOp();
  auto interface = op ? dyn_cast<ShardingRuleOpInterface>(op) : ShardingRuleOpInterface();
  Value slice;
  if (interface && times.of(old).time == Time::Invariant) {
    ShardingRule rule = interface.getShardingRule();
    unsigned result = cast<OpResult>(old).getResultNumber();
    std::optional<BatchFactor> batch = BatchFactor::find(rule, rule.results[result][dim], outer);
    if (batch && rule.factors[batch->factor].kind == FactorKind::Parallel &&
        rule.factors[batch->factor].size / batch->outer % count == 0) {
      FailureOr<SmallVector<Value>> local = localizeInLoop(loop, op, batch, rule);
      if (failed(local))
        return failure();
      slice = (*local)[result];
    }
  }
  if (!slice)
    slice = cutSlice(loop, old, dim, outer);
  return loop.slices[{old, dim, outer}] = slice;
}

namespace {
/// Gives ops built in its scope the stage of the op from which they are built.
struct StageKeeper : OpBuilder::Listener {
  StageKeeper(OpBuilder &builder, Operation *from) : builder(builder), stage(getStage(from)) {
    before = builder.getListener();
    builder.setListener(this);
  }
  ~StageKeeper() override { builder.setListener(before); }
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    if (stage && isTensorOp(op))
      setStage(op, *stage);
  }
  OpBuilder &builder;
  std::optional<int64_t> stage;
  OpBuilder::Listener *before;
};
} // namespace

/// Builds `op` on slices: dims that have the factor `batch` are divided by the number of microbatches.
FailureOr<SmallVector<Value>> StepSlicer::localizeInLoop(Loop &loop, Operation *op, std::optional<BatchFactor> batch,
                                                         const ShardingRule &rule) {
  auto dimWith = [&](ArrayRef<DimFactors> dims) -> int64_t {
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (batch && llvm::is_contained(factors, batch->factor))
        return dim;
    return -1;
  };
  SmallVector<Value> operands;
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands)) {
    int64_t dim = dimWith(dims);
    if (times.of(operand).time == Time::Invariant && dim >= 0 && count > 1) {
      FailureOr<Value> slice = sliceInvariant(loop, operand, dim, batch->outerIn(rule, dims[dim]));
      if (failed(slice))
        return failure();
      operands.push_back(*slice);
    } else {
      operands.push_back(valueInLoop(loop, operand));
    }
  }
  SmallVector<RankedTensorType> types;
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results))
    types.push_back(cast<RankedTensorType>(sliceType(result.getType(), dimWith(dims))));
  // Slicing in time has no mesh: shardings are empty and no op may need a coordinate.
  LocalizeContext context{MeshAttr::get(builder.getContext(), {}, {}), operands, types, {}, {}};
  StageKeeper keeper(builder, op);
  return cast<ShardingRuleOpInterface>(op).localize(builder, context);
}

LogicalResult StepSlicer::emitInLoop(Loop &loop, Operation *op) {
  if (isa<ReadOp>(op))
    return success();
  builder.setInsertionPointToEnd(loop.body);
  if (auto cotangent = dyn_cast<CotangentOp>(op)) {
    // The loss itself is known only after the loop; the seed flows back.
    Value seed = valueInLoop(loop, cotangent.getSeed());
    StageKeeper keeper(builder, op);
    loop.map[cotangent] = CotangentOp::create(builder, op->getLoc(), seed, seed);
    return success();
  }
  bool sliced = llvm::any_of(op->getOperands(), [&](Value operand) { return times.of(operand).time == Time::Sliced; });
  if (!sliced || count == 1) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, valueInLoop(loop, operand));
    Operation *clone = builder.clone(*op, mapping);
    for (auto [old, now] : llvm::zip(op->getResults(), clone->getResults()))
      loop.map[old] = now;
    return success();
  }
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  std::optional<BatchFactor> batch;
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    if (BatchTime time = times.of(operand); time.time == Time::Sliced && time.dim >= 0 && !dims[time.dim].empty())
      batch = BatchFactor::find(rule, dims[time.dim], time.outer);
  FailureOr<SmallVector<Value>> local = localizeInLoop(loop, op, batch, rule);
  if (failed(local))
    return failure();
  for (auto [old, now] : llvm::zip(op->getResults(), *local))
    loop.map[old] = now;
  return success();
}

void StepSlicer::emitOutside(Operation *op) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, outside.lookup(operand));
  Operation *clone = builder.clone(*op, mapping);
  for (auto [old, now] : llvm::zip(op->getResults(), clone->getResults()))
    outside[old] = now;
}

/// A read has its variable's type, which may have changed.
void StepSlicer::emitRead(ReadOp read) {
  VariableOp variable = times.variables.of(read);
  outside[read] = ReadOp::create(builder, read.getLoc(), variable.getTensorType(), read.getVariable(), read.getBehind(),
                                 variable.getTensorType() == read.getType() ? read.getBatch() : -1);
}

/// Emits an op after the loops. A carried value is written as the microbatches have stacked it.
void StepSlicer::emitBehind(Operation *op) {
  auto write = dyn_cast<WriteOp>(op);
  if (!write || count == 1 || !times.variables.isCarried(write) || times.of(write.getOperand()).time != Time::Sliced)
    return emitOutside(op);
  WriteOp::create(builder, write.getLoc(), stacked.lookup(write.getOperand()), write.getVariable());
}

/// The variable of a gradient, or of a summand of a tied variable's gradient; else empty.
static StringRef labelOf(Value sum) {
  for (Operation *user : sum.getUsers()) {
    if (auto gradient = dyn_cast<GradientOp>(user))
      return gradient.getVariable();
    if (auto add = dyn_cast<AddOp>(user))
      if (StringRef label = labelOf(add.getResult()); !label.empty())
        return label;
  }
  return "";
}

/// The microbatch's term of the stacked sum: its slice at its index, zeros elsewhere.
Value StepSlicer::placeInLoop(Loop &loop, Value old) {
  builder.setInsertionPointToEnd(loop.body);
  Value slice = loop.map.lookup(old), number = loop.body->getArgument(0);
  auto type = cast<RankedTensorType>(slice.getType());
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, type.getShape());
  std::optional<StageKeeper> keeper;
  if (Operation *source = old.getDefiningOp())
    keeper.emplace(builder, source);
  Location loc = old.getLoc();
  Value row = buildReshape(builder, loc, slice, shape);
  if (count == 1)
    return row;
  Value place = buildReshape(builder, loc, number, {1});
  return IndexAddOp::create(builder, loc, row, place, /*dim=*/0, /*size=*/count);
}

/// The whole of a value, (B, ...), of all its slices (m, B/m, ...); its batch may be another dim, or the minor part of
/// one.
Value StepSlicer::joinSlices(Value old, Value slices) {
  int64_t dim = times.of(old).dim, outer = times.of(old).outer, rank = cast<RankedTensorType>(old.getType()).getRank();
  if (outer > 1) { // (m, ..., (outer B/m), ...) becomes (m, ..., outer, B/m, ...)
    SmallVector<int64_t> shape(cast<RankedTensorType>(slices.getType()).getShape());
    shape[++dim] /= outer;
    shape.insert(shape.begin() + dim, outer);
    slices = buildReshape(builder, old.getLoc(), slices, shape);
    ++rank;
  }
  if (dim > 0) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(1, rank + 1));
    order.insert(order.begin() + dim, 0);
    slices = Term(builder, old.getLoc(), slices).transpose(order);
  }
  return buildReshape(builder, old.getLoc(), slices, cast<RankedTensorType>(old.getType()).getShape());
}

/// Turns a body into the op at the insertion point, and maps its results.
void StepSlicer::close(Loop &loop) {
  SmallVector<Value> slices = llvm::map_to_vector(batched(), [&](Value old) { return outside.lookup(old); });
  SmallVector<Value> inner;
  SmallVector<Attribute> kinds, labels;
  SmallVector<Type> types;
  OpBuilder::InsertPoint behind = builder.saveInsertionPoint();
  for (auto [old, kind] : loop.yields) {
    Value value = collected.contains(old) ? placeInLoop(loop, old) : loop.map.lookup(old);
    auto type = cast<RankedTensorType>(value.getType());
    inner.push_back(value);
    labels.push_back(builder.getStringAttr(labelOf(old)));
    kinds.push_back(YieldKindAttr::get(builder.getContext(), kind));
    SmallVector<int64_t> shape(type.getShape());
    if (kind == YieldKind::stack)
      shape.insert(shape.begin(), count);
    types.push_back(type.clone(shape));
  }
  builder.restoreInsertionPoint(behind);
  OpBuilder inBody(builder.getContext());
  inBody.setInsertionPointToEnd(loop.body);
  YieldOp::create(inBody, step.getLoc(), builder.getArrayAttr(kinds), inner);
  loop.op = LoopOp::create(builder, step.getLoc(), types, count, slices, builder.getArrayAttr(labels));
  loop.op.getBody().push_back(loop.body);
  for (auto [yield, result] : llvm::zip(loop.yields, loop.op.getResults())) {
    auto [old, kind] = yield;
    bool apart = kind == YieldKind::stack || collected.contains(old);
    if (apart || !stacked.contains(old))
      stacked[old] = result;
    if (!apart)
      outside[old] = result;
    else if (!llvm::is_contained(loop.yields, std::pair(old, YieldKind::sum)) || collected.contains(old))
      outside[old] = joinSlices(old, result);
  }
}

/// A value computed both per microbatch and per batch is often used in one of the two forms only.
static void eraseDead(StepOp step) {
  SmallVector<Operation *> ops;
  step.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

/// A result of the step. A sliced value returns its microbatches: (B, ...) becomes (m, B/m, ...).
FailureOr<Value> StepSlicer::resultOf(OpOperand &returned) {
  Value old = returned.get();
  BatchTime time = times.of(old);
  if (time.time != Time::Sliced || time.dim < 0 || !stacked.contains(old))
    return outside.lookup(old);
  if (time.outer > 1)
    return step.emitError() << "output " << returned.getOperandNumber() << " has its batch as the minor part of dim "
                            << time.dim << "; say batch.microbatches: 1";
  if (time.dim != 0)
    return step.emitError() << "output " << returned.getOperandNumber() << " has its batch in dim " << time.dim
                            << "; only dim 0 is supported yet";
  return stacked.lookup(old);
}

/// (B, ...) becomes (m, B/m, ...).
FailureOr<RankedTensorType> StepSlicer::spreadType(Location loc, RankedTensorType type) {
  if (type.getDimSize(0) % count)
    return emitError(loc) << "the batch of " << type.getDimSize(0) << " does not divide into " << count
                          << " microbatches";
  SmallVector<int64_t> shape{count, type.getDimSize(0) / count};
  llvm::append_range(shape, type.getShape().drop_front());
  return type.clone(shape);
}

/// A carried value of which each of several microbatches has its own samples gets a variable of that shape.
LogicalResult StepSlicer::spreadCarried() {
  llvm::MapVector<VariableOp, Value> carried;
  auto find = [&](Value value, FlatSymbolRefAttr name) {
    VariableOp variable = times.variables.lookup(name.getAttr());
    if (count > 1 && variable.getKind() == VariableKind::carried && times.of(value).time == Time::Sliced)
      carried.insert({variable, value});
  };
  for (ReadOp read : step.getBlock().getOps<ReadOp>())
    find(read, read.getVariableAttr());
  for (WriteOp write : step.getBlock().getOps<WriteOp>())
    find(write.getOperand(), write.getVariableAttr());
  for (auto [variable, value] : carried) {
    FailureOr<RankedTensorType> type = spreadType(value.getLoc(), cast<RankedTensorType>(value.getType()));
    if (failed(type))
      return failure();
    variable.setTypeAttr(TypeAttr::get(*type));
  }
  return success();
}

/// Inputs: (B, ...) becomes (m, B/m, ...).
LogicalResult StepSlicer::addInputs(Block &fresh) {
  for (BlockArgument argument : step.getBlock().getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    BatchTime time = times.of(argument);
    if (time.time == Time::Sliced) {
      if (time.dim != 0)
        return step.emitError() << "input " << argument.getArgNumber() << " has its batch in dim " << time.dim
                                << "; only dim 0 is supported yet";
      FailureOr<RankedTensorType> spread = spreadType(step.getLoc(), type);
      if (failed(spread))
        return failure();
      type = *spread;
    }
    outside[argument] = fresh.addArgument(type, argument.getLoc());
  }
  return success();
}

/// Yields the values used outside the loops: sums, and slices that a result or a gradient needs. With one microbatch
/// the slice that is written is the whole value.
void StepSlicer::yieldWhatLeaves(Block &old) {
  auto leaves = [&](Value value, bool carries) {
    BatchTime time = times.of(value);
    if (times.isDataSum(value))
      return yieldFrom(dataLoop, value, YieldKind::sum);
    if (time.time == Time::Sum || (time.time == Time::Sliced && (time.dim < 0 || carries)))
      return yieldFrom(mainLoop, value, YieldKind::sum);
    if (time.time == Time::Sliced)
      return yieldFrom(mainLoop, value, collected.contains(value) ? YieldKind::sum : YieldKind::stack);
  };
  for (auto collect : old.getOps<CollectOp>())
    if (BatchTime time = times.of(collect.getOperand()); time.time == Time::Sliced && time.dim >= 0)
      collected.insert(collect.getOperand());
  for (Operation &op : old) {
    bool outer = op.hasTrait<OpTrait::IsTerminator>() || (times.placesOf(&op) & Behind);
    for (Value operand : op.getOperands())
      if (outer || (times.placesOf(&op) && times.isDataSum(operand)))
        leaves(operand, count == 1 && isa<WriteOp>(op));
  }
}

LogicalResult StepSlicer::emitAll(Block &old, Block &fresh) {
  open(dataLoop);
  open(mainLoop);
  builder.setInsertionPointToEnd(&fresh);
  for (ReadOp read : old.getOps<ReadOp>())
    emitRead(read);
  for (Operation &op : old.without_terminator()) {
    unsigned places = isa<ReadOp>(op) ? 0u : times.placesOf(&op);
    if ((places & InDataLoop) && failed(emitInLoop(dataLoop, &op)))
      return failure();
    if (places & Behind)
      behindOps.push_back(&op);
  }
  yieldWhatLeaves(old);
  builder.setInsertionPointToEnd(&fresh);
  if (!dataLoop.yields.empty())
    close(dataLoop);
  for (Operation &op : old.without_terminator())
    if ((times.placesOf(&op) & InLoop) && failed(emitInLoop(mainLoop, &op)))
      return failure();
  builder.setInsertionPointToEnd(&fresh);
  close(mainLoop);
  for (Operation *op : behindOps)
    emitBehind(op);
  return success();
}

LogicalResult StepSlicer::run() {
  Block &old = step.getBlock();
  Block *fresh = new Block;
  step.getBody().push_back(fresh);
  if (failed(spreadCarried()) || failed(addInputs(*fresh)) || failed(emitAll(old, *fresh)))
    return failure();
  SmallVector<Value> results;
  for (OpOperand &returned : old.getTerminator()->getOpOperands()) {
    FailureOr<Value> result = resultOf(returned);
    if (failed(result))
      return failure();
    results.push_back(*result);
  }
  ReturnOp::create(builder, old.getTerminator()->getLoc(), results);
  if (!dataLoop.op) {
    dataLoop.body->dropAllReferences();
    delete dataLoop.body;
  }
  old.dropAllReferences();
  old.erase();
  step.setFunctionType(builder.getFunctionType(fresh->getArgumentTypes(), ValueRange(results).getTypes()));
  eraseDead(step);
  return success();
}

namespace {
struct SliceMicrobatchesPass : impl::SliceMicrobatchesPassBase<SliceMicrobatchesPass> {
  using SliceMicrobatchesPassBase::SliceMicrobatchesPassBase;

  void runOnOperation() override {
    if (microbatches < 1) {
      getOperation().emitError() << "microbatches is " << microbatches.getValue() << ", expected at least 1";
      return signalPassFailure();
    }
    for (StepOp step : getOperation().getOps<StepOp>()) {
      FailureOr<BatchTimes> times = BatchTimes::compute(step, microbatches);
      if (failed(times) || failed(StepSlicer(step, microbatches, std::move(*times)).run()))
        return signalPassFailure();
    }
  }
};
} // namespace

} // namespace par
