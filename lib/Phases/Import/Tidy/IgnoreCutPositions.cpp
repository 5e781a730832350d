// Extends sums over all but the last positions to all positions.
//
// A language model that shifts its own labels slices the last position off its logits, `logits[:, :-1]`. If the
// sequence is sharded, that slice gathers the logits; otherwise it copies them. Instead, everything between the slice
// and the sums at the end of the loss is computed for all positions: labels are padded with the ignored one, and values
// other than losses of labels are set to zero before they are summed.
//
// The analysis follows the users of a slice up to the sums, and the other operands of these users back to values that
// are available for all positions. Nothing is changed unless every path ends in such. Sharding rules tell how dims
// correspond, and `localize` rebuilds the ops, as slicing in time does. Positions that merges have mixed with the batch
// are not found.
#include "par/Dialect/Interfaces/ShardingRule.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Import/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace par {

#define GEN_PASS_DEF_IGNORECUTPOSITIONSPASS
#include "par/Phases/Import/Passes.h.inc"

using namespace mlir;

namespace {

/// A slice that keeps the first `kept` of `whole` positions of one dim.
struct EndCut {
  int64_t dim = 0, kept = 0, whole = 0;

  /// A few positions more are worth computing if a loss does not need them, but not most of the sequence.
  bool isShort() const { return whole - kept == 1 || (whole - kept) * 16 <= whole; }
};

RankedTensorType shapedType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The cut of a slice at the end of a single dim.
std::optional<EndCut> endCutOf(SliceOp slice) {
  std::optional<EndCut> found;
  for (auto [dim, whole] : llvm::enumerate(shapedType(slice.getOperand()).getShape())) {
    if (slice.getStarts()[dim] != 0 || slice.getStrides()[dim] != 1 || (found && slice.getLimits()[dim] != whole))
      return std::nullopt;
    if (slice.getLimits()[dim] != whole)
      found = EndCut{int64_t(dim), slice.getLimits()[dim], whole};
  }
  return found;
}

/// The only dim that has the factor, -1: none does; nothing if it is a part of a dim.
std::optional<int64_t> dimOfFactor(ArrayRef<DimFactors> dims, unsigned factor) {
  int64_t found = -1;
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (!llvm::is_contained(factors, factor))
      continue;
    if (found >= 0 || factors.size() != 1)
      return std::nullopt;
    found = dim;
  }
  return found;
}

/// One cut, and the rewrite that removes it.
class Uncut {
public:
  Uncut(SliceOp slice, EndCut cut) : slice(slice), cut(cut), builder(slice) {}

  /// Whether everything that the slice leads to ends in sums; changes nothing.
  bool can();
  /// May only follow `can`.
  LogicalResult build();

private:
  bool follow(OpOperand &use);
  bool enter(Operation *op, unsigned factor);
  bool extend(Value value, int64_t dim, Operation *user);
  bool extendOp(Operation *op, unsigned result, int64_t dim);
  bool mark(Value value, int64_t dim);
  bool endsInZero(Value value);
  RankedTensorType wholeType(Value value);
  Value wholeOf(Value value);
  LogicalResult buildOp(Operation *op, unsigned factor);
  void buildSum(ReduceOp sum);

  SliceOp slice;
  EndCut cut;
  OpBuilder builder;
  DenseMap<Value, int64_t> dims;              ///< the sliced dim of every value that is needed for all positions
  llvm::MapVector<Operation *, unsigned> ops; ///< ops to rebuild, with the factor that is the sliced dim
  llvm::SetVector<Operation *> sums;          ///< ends of the sliced dim
  DenseMap<Value, int64_t> pads;              ///< integers that have only the kept positions, and their padding
  DenseMap<Value, Value> built;
  SmallVector<Value> ahead; ///< values whose users are to be followed
};

bool Uncut::mark(Value value, int64_t dim) { return dims.try_emplace(value, dim).first->second == dim; }

bool Uncut::can() {
  mark(slice, cut.dim);
  ahead.push_back(slice);
  for (size_t next = 0; next < ahead.size(); ++next)
    for (OpOperand &use : ahead[next].getUses())
      if (!follow(use))
        return false;
  return !sums.empty();
}

/// A user of a sliced value: a sum ends the path, an op that is parallel along the dim continues it.
bool Uncut::follow(OpOperand &use) {
  Operation *op = use.getOwner();
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || op->getBlock() != slice->getBlock())
    return false;
  ShardingRule rule = interface.getShardingRule();
  const DimFactors &factors = rule.operands[use.getOperandNumber()][dims.lookup(use.get())];
  if (factors.size() != 1)
    return false;
  if (auto sum = dyn_cast<ReduceOp>(op); sum && rule.factors[factors[0]].kind == FactorKind::Sum)
    return sum.getKind() == ReduceKind::sum && (sums.insert(op), true);
  if (!enter(op, factors[0]))
    return false;
  for (auto [result, resultDims] : llvm::zip(op->getResults(), rule.results))
    if (*dimOfFactor(resultDims, factors[0]) >= 0 && !llvm::is_contained(ahead, result))
      ahead.push_back(result);
  return true;
}

/// Marks the op for rebuilding with the longer factor, and its operands in turn.
bool Uncut::enter(Operation *op, unsigned factor) {
  auto [at, inserted] = ops.insert({op, factor});
  if (!inserted)
    return at->second == factor;
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  if (rule.factors[factor].kind != FactorKind::Parallel)
    return false;
  for (auto [result, resultDims] : llvm::zip(op->getResults(), rule.results)) {
    std::optional<int64_t> dim = dimOfFactor(resultDims, factor);
    if (!dim || (*dim >= 0 && !mark(result, *dim)))
      return false;
  }
  for (auto [operand, operandDims] : llvm::zip(op->getOperands(), rule.operands)) {
    std::optional<int64_t> dim = dimOfFactor(operandDims, factor);
    if (!dim || (*dim >= 0 && !extend(operand, *dim, op)))
      return false;
  }
  return true;
}

/// Whether a value can be had for all positions.
bool Uncut::extend(Value value, int64_t dim, Operation *user) {
  auto losses = dyn_cast<CrossEntropyOp>(user);
  bool labels = losses && losses.getLabels() == value;
  int64_t pad = labels ? losses.getIgnore() : 0;
  if (auto padded = pads.find(value); padded != pads.end() && padded->second != pad)
    return false;
  if (dims.contains(value))
    return dims.lookup(value) == dim;
  Operation *op = value.getDefiningOp();
  if (auto other = dyn_cast_or_null<SliceOp>(op)) {
    std::optional<EndCut> own = endCutOf(other);
    if (own && own->dim == dim && own->whole == cut.whole)
      return mark(value, dim);
  }
  auto integer = dyn_cast<IntegerType>(shapedType(value).getElementType());
  if (labels || (integer && integer.getWidth() > 1 && !isa_and_nonnull<ConstantOp>(op))) {
    pads[value] = pad;
    return mark(value, dim);
  }
  return op && op->getBlock() == slice->getBlock() && extendOp(op, cast<OpResult>(value).getResultNumber(), dim);
}

bool Uncut::extendOp(Operation *op, unsigned result, int64_t dim) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return false;
  const DimFactors factors = interface.getShardingRule().results[result][dim];
  return factors.size() == 1 && enter(op, factors[0]);
}

RankedTensorType Uncut::wholeType(Value value) {
  RankedTensorType type = shapedType(value);
  if (!dims.contains(value))
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[dims.lookup(value)] = cut.whole;
  return type.clone(shape);
}

/// The value for all positions; itself if it lacks the sliced dim.
Value Uncut::wholeOf(Value value) {
  if (!dims.contains(value))
    return value;
  Value &whole = built[value];
  if (whole)
    return whole;
  auto pad = pads.find(value);
  if (pad == pads.end()) // neither rebuilt nor padded: a slice
    return whole = value.getDefiningOp<SliceOp>().getOperand();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(value);
  SmallVector<int64_t> low(shapedType(value).getRank(), 0), high(low);
  high[dims.lookup(value)] = cut.whole - cut.kept;
  auto number = builder.getIntegerAttr(shapedType(value).getElementType(), pad->second);
  Location loc = value.getDefiningOp() ? value.getLoc() : slice.getLoc();
  return whole = PadOp::create(builder, loc, wholeType(value), value, low, high, number);
}

LogicalResult Uncut::buildOp(Operation *op, unsigned factor) {
  auto interface = cast<ShardingRuleOpInterface>(op);
  ShardingRule rule = interface.getShardingRule();
  SmallVector<Value> operands;
  for (auto [operand, operandDims] : llvm::zip(op->getOperands(), rule.operands))
    operands.push_back(*dimOfFactor(operandDims, factor) >= 0 ? wholeOf(operand) : operand);
  SmallVector<RankedTensorType> types;
  for (Value result : op->getResults())
    types.push_back(wholeType(result));
  builder.setInsertionPoint(op);
  // No mesh, as in slicing in time.
  LocalizeContext context{MeshAttr::get(builder.getContext(), {}, {}), operands, types, {}, {}};
  FailureOr<SmallVector<Value>> values = interface.localize(builder, context);
  if (failed(values))
    return failure();
  for (auto [old, now] : llvm::zip(op->getResults(), *values))
    built[old] = now;
  return success();
}

/// A loss whose labels are ignored is zero.
bool Uncut::endsInZero(Value value) {
  auto losses = value.getDefiningOp<CrossEntropyOp>();
  return losses && losses.getLoss() == value && pads.contains(losses.getLabels());
}

void Uncut::buildSum(ReduceOp sum) {
  builder.setInsertionPoint(sum);
  Value operand = sum.getOperand();
  Term terms(builder, sum.getLoc(), wholeOf(operand));
  if (!endsInZero(operand)) {
    auto places = terms.getType().clone(builder.getI64Type());
    Term place = terms.with(IotaOp::create(builder, sum.getLoc(), places, dims.lookup(operand)));
    terms = place.compare(Predicate::lt, double(cut.kept)).select(terms, terms.splat(0));
  }
  sum.getOperandMutable().assign(terms);
}

LogicalResult Uncut::build() {
  SmallVector<Operation *> order;
  for (Operation &op : *slice->getBlock())
    if (ops.contains(&op) || sums.contains(&op))
      order.push_back(&op);
  for (Operation *op : order)
    if (sums.contains(op))
      buildSum(cast<ReduceOp>(op));
    else if (failed(buildOp(op, ops.lookup(op))))
      return failure();
  return success();
}

/// Erases ops that only fed the sliced positions.
void eraseUncut(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!isa<ReadOp>(op) && isOpTriviallyDead(&op))
      op.erase();
}

/// Removes one cut, if one can be removed.
FailureOr<bool> ignoreOne(Block &block) {
  for (auto slice : block.getOps<SliceOp>()) {
    std::optional<EndCut> cut = endCutOf(slice);
    if (!cut || !cut->isShort())
      continue;
    Uncut uncut(slice, *cut);
    if (!uncut.can())
      continue;
    if (failed(uncut.build()))
      return failure();
    eraseUncut(block);
    return true;
  }
  return false;
}

struct IgnoreCutPositionsPass : impl::IgnoreCutPositionsPassBase<IgnoreCutPositionsPass> {
  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>())
      while (true) {
        FailureOr<bool> changed = ignoreOne(step.getBlock());
        if (failed(changed))
          return signalPassFailure();
        if (!*changed)
          break;
      }
  }
};

} // namespace
} // namespace par
