// Classifies every value of a step by microbatch: the same for all, a slice, or a sum over microbatches. The batch dim
// is followed through the factors of the ops' sharding rules; a coupling between microbatches is refused.
#include "BatchTimes.h"
#include "MovedGradients.h"

#include "par/Dialect/Modes.h"

#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace par {

std::optional<BatchFactor> BatchFactor::find(const ShardingRule &rule, ArrayRef<unsigned> dim, int64_t outer) {
  if (outer == 1 && llvm::all_of(dim, [&](unsigned factor) { return rule.factors[factor].size == 1; }))
    return dim.empty() ? std::nullopt : std::optional<BatchFactor>({dim.front(), 1}); // a batch of one
  for (unsigned factor : dim) {
    int64_t size = rule.factors[factor].size;
    if (outer < size)
      return size % outer ? std::nullopt : std::optional<BatchFactor>({factor, outer});
    if (outer % size)
      return std::nullopt;
    outer /= size;
  }
  return std::nullopt;
}

int64_t BatchFactor::outerIn(const ShardingRule &rule, ArrayRef<unsigned> dim) const {
  int64_t before = outer;
  for (unsigned other : dim) {
    if (other == factor)
      break;
    before *= rule.factors[other].size;
  }
  return before;
}

FailureOr<BatchTimes> BatchTimes::compute(StepOp step, int64_t microbatches) {
  BatchTimes result(step);
  result.microbatches = microbatches;
  do {
    result.foundEarly = false;
    result.times.clear();
    if (succeeded(result.classifyAll(step)))
      return result;
  } while (result.foundEarly);
  if (!result.needsWhole)
    return failure();
  // With one microbatch sums over the batch are known in the loop: all ops that depend on the batch stay in it.
  BatchTimes whole(step);
  whole.whole = true;
  if (failed(whole.classifyAll(step)))
    return failure();
  return whole;
}

LogicalResult BatchTimes::classifyAll(StepOp step) {
  std::optional<ArrayRef<int64_t>> dims = step.getBatchDims();
  for (BlockArgument argument : step.getArguments()) {
    int64_t dim = dims ? (*dims)[argument.getArgNumber()] : 0;
    BatchTime time;
    if (dim >= 0 && getTensorType(argument.getType()).getRank() > 0) {
      time.time = Time::Sliced;
      time.dim = dim;
    }
    times[argument] = time;
  }
  for (Operation &op : step.getBlock().without_terminator())
    if (failed(classify(&op)))
      return failure();
  placeBatchOfOne(step);
  place(step);
  return success();
}

/// The dim of a batch of one is unknown inside the step; the importer knows it for outputs.
void BatchTimes::placeBatchOfOne(StepOp step) {
  auto dims = step->getAttrOfType<DictionaryAttr>(batchOfOneAttr);
  if (!dims || !step.getOutputs())
    return;
  for (auto [result, name] :
       llvm::zip(step.getTerminator()->getOperands(), step.getOutputs()->getAsRange<StringAttr>())) {
    auto dim = dims.getAs<IntegerAttr>(name);
    BatchTime &time = times[result];
    if (dim && time.time == Time::Sliced && time.dim < 0 && !isa<BlockArgument>(result)) {
      time.dim = dim.getInt();
      time.outer = 1;
    }
  }
}

/// Variables that no gradient changes count as data.
static bool readsData(VariableOp variable) {
  VariableKind kind = variable.getKind();
  return kind == VariableKind::buffer || kind == VariableKind::frozen || kind == VariableKind::constant;
}

/// Whether op(sum of parts) = sum of op(part), one part for each microbatch, and the op should run on the parts. Parts
/// that one stage contributes to a value are added at once, so a gradient never has two accumulators. A gradient is
/// accumulated in the shape of its variable.
static bool isSumOfParts(Operation *op, ArrayRef<unsigned> sums) {
  if (sums.size() == 1)
    return !movesIntoGradient(op, sums.front()).empty();
  return sums.size() == op->getNumOperands() && isLinearIn(op, sums) && getStage(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return getStage(operand.getDefiningOp()) == getStage(op); });
}

LogicalResult BatchTimes::classifyRead(ReadOp read) {
  BatchTime &time = times[read];
  time.dataOnly = variables.isCarried(read) || readsData(variables.of(read));
  // A microbatch works on its own samples of a carried value; a value without a batch is the same for all.
  auto batch = static_cast<int64_t>(read.getBatch());
  if (!variables.isCarried(read) || (microbatches > 1 && batch < 0))
    return success();
  time.time = Time::Sliced;
  time.dim = batch;
  if (microbatches > 1 && time.dim > 0)
    return read->emitError() << "carries a value from call to call whose batch is dim " << time.dim
                             << "; only dim 0 is supported yet with " << microbatches << " microbatches";
  return success();
}

/// With several microbatches each carries on the value of its own samples: the read and the write are sliced alike.
LogicalResult BatchTimes::classifyCarried(WriteOp write) {
  auto reads = write->getBlock()->getOps<ReadOp>();
  auto read = llvm::find_if(reads, [&](ReadOp other) { return other.getVariable() == write.getVariable(); });
  const BatchTime &made = of(write.getOperand());
  bool sliced = made.time == Time::Sliced;
  int64_t dim = read != reads.end() ? static_cast<int64_t>((*read).getBatch()) : sliced ? made.dim : -1;
  Operation *source = write.getOperand().getDefiningOp();
  if (sliced && (!source || isa<ReadOp>(source)))
    return write->emitError() << "carries on to @" << write.getVariable() << " an unchanged input or state in "
                              << microbatches << " microbatches; say batch.microbatches: 1";
  if (dim >= 0 ? sliced && made.dim == dim && made.outer == 1 : !sliced)
    return success();
  InFlightDiagnostic diagnostic = write->emitError() << "carries on to @" << write.getVariable() << ", ";
  diagnostic << (dim < 0  ? "which has no batch, a value of each microbatch"
                 : sliced ? "whose batch is dim 0, a value with its batch elsewhere"
                          : "which has a batch, a value that is the same for all microbatches");
  diagnostic << "; say batch.microbatches: 1";
  return diagnostic;
}

/// Makes a first pass compute the sums that the op needs together with slices. They must be sums of forward, and depend
/// on no other sum of that pass.
bool BatchTimes::addEarly(Operation *op) {
  SmallVector<Value> sums;
  SetVector<Value> open(op->operand_begin(), op->operand_end());
  for (size_t i = 0; i < open.size(); ++i) {
    Value value = open[i];
    const BatchTime &time = of(value);
    if (time.time == Time::Sum && !isDataSum(value))
      sums.push_back(value);
    else if (time.time == Time::After)
      open.insert(value.getDefiningOp()->operand_begin(), value.getDefiningOp()->operand_end());
  }
  for (Value sum : sums) {
    SetVector<Operation *> makers;
    BackwardSliceOptions options;
    options.inclusive = true;
    (void)getBackwardSlice(sum, &makers, options);
    bool isForward =
        llvm::none_of(makers, [](Operation *maker) { return isa<CotangentOp, GradientOp, StageAllReduceOp>(maker); });
    if (of(sum).early || !isForward)
      return false;
  }
  early.insert(sums.begin(), sums.end());
  return !sums.empty();
}

LogicalResult BatchTimes::refuseCoupling(Operation *op) {
  InFlightDiagnostic diagnostic =
      op->emitError() << "couples microbatches: it needs slices of the batch together with a sum over the whole batch; "
                         "say batch.microbatches: 1, or make the loss a sum over samples (statistics of each sequence)";
  for (Value operand : op->getOperands())
    if (of(operand).time == Time::Sum || of(operand).time == Time::After)
      diagnostic.attachNote(operand.getLoc()) << "this is known only when all microbatches have run";
  return diagnostic;
}

LogicalResult BatchTimes::classify(Operation *op) {
  BatchTime joined;
  bool sliced = false, sum = false, after = false;
  for (Value operand : op->getOperands()) {
    BatchTime time = of(operand);
    // After its loop a finished sum that depends only on data counts as given.
    bool given = isDataSum(operand);
    joined.between |= time.between || given;
    joined.early |= time.early || early.contains(operand);
    joined.dataOnly &= time.dataOnly;
    sliced |= time.time == Time::Sliced;
    sum |= time.time == Time::Sum && !given;
    after |= time.time == Time::After;
  }
  joined.dataOnly &= !joined.between;
  if (auto read = dyn_cast<ReadOp>(op)) {
    return classifyRead(read);
  } else if (auto write = dyn_cast<WriteOp>(op); write && microbatches > 1 && variables.isCarried(write)) {
    return classifyCarried(write);
  } else if (write && microbatches > 1 && sliced) {
    return write->emitError() << "couples microbatches: the value written to the buffer \"" << write.getVariable()
                              << "\" is not the same for all samples; say batch.microbatches: 1";
  } else if (auto cotangent = dyn_cast<CotangentOp>(op)) {
    // Its value is the seed's, whatever becomes of the loss.
    joined = of(cotangent.getSeed());
    joined.dataOnly = false;
  } else if (isa<GradientOp, CollectOp, StageAllReduceOp>(op)) {
    // Needs the finished sum, or all slices. With one microbatch the batch's dim may be unknown: the whole is the sum.
    joined.time = Time::After;
    joined.dataOnly = false;
  } else if (whole && sliced && after) {
    // The only microbatch is done: a moving statistic is kept if the gradients overflow.
    joined.time = Time::After;
    joined.dataOnly = false;
  } else if (sliced && (sum || after) && microbatches == 1) {
    needsWhole = true;
    return failure();
  } else if (sliced && (sum || after)) {
    foundEarly = addEarly(op);
    return foundEarly ? failure() : refuseCoupling(op);
  } else if (sliced) {
    return classifySliced(op);
  } else if (after || sum) {
    joined.time = Time::After;
    SmallVector<unsigned> sums;
    for (OpOperand &operand : op->getOpOperands())
      if (of(operand.get()).time == Time::Sum)
        sums.push_back(operand.getOperandNumber());
    if (!after && isSumOfParts(op, sums))
      joined.time = Time::Sum;
  }
  for (Value result : op->getResults())
    times[result] = joined;
  return success();
}

/// Follows the batch through an op that has a sliced operand, by the factor of its rule.
LogicalResult BatchTimes::classifySliced(Operation *op) {
  BatchTime joined;
  for (Value operand : op->getOperands()) {
    joined.dataOnly &= of(operand).dataOnly && !of(operand).between && of(operand).time != Time::Sum;
    joined.between |= of(operand).between;
    joined.early |= of(operand).early || early.contains(operand);
  }
  joined.between = false; // a slice is never between
  joined.time = Time::Sliced;
  if (op->getNumResults() == 0 && microbatches == 1)
    return success(); // writes the only microbatch's value, after the loop
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return op->emitError() << "couples microbatches: its sharding rule is not known";
  ShardingRule rule = interface.getShardingRule();
  FailureOr<std::optional<BatchFactor>> found = findBatch(op, rule);
  if (failed(found))
    return failure();
  std::optional<BatchFactor> batch = *found;
  bool lost = llvm::any_of(llvm::zip(op->getOperands(), rule.operands), [&](auto each) {
    const BatchTime &time = of(std::get<0>(each));
    return time.time == Time::Sliced && (time.dim < 0 || std::get<1>(each)[time.dim].empty());
  });
  FactorKind kind = batch ? rule.factors[batch->factor].kind : FactorKind::Parallel;
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results)) {
    BatchTime time = joined;
    if (batch && kind == FactorKind::Sum && !lost && !whole)
      time.time = Time::Sum;
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (batch && llvm::is_contained(factors, batch->factor)) {
        time.outer = batch->outerIn(rule, factors);
        // One microbatch is the whole batch, which need not be followed.
        time.dim = microbatches > 1 || time.outer == 1 ? dim : -1;
      }
    if (time.time == Time::Sliced && time.dim < 0 && microbatches > 1)
      return op->emitError() << "couples microbatches: the batch of its operand is nowhere in its result; "
                                "say batch.microbatches: 1";
    times[result] = time;
  }
  return success();
}

/// The factor of an op's rule that is the batch of its sliced operands, and may be sliced; nothing if the batch's dim
/// of the only microbatch is unknown.
FailureOr<std::optional<BatchFactor>> BatchTimes::findBatch(Operation *op, const ShardingRule &rule) const {
  std::optional<BatchFactor> batch;
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands)) {
    const BatchTime &time = of(operand);
    if (time.time != Time::Sliced || time.dim < 0 || dims[time.dim].empty())
      continue;
    std::optional<BatchFactor> here = BatchFactor::find(rule, dims[time.dim], time.outer);
    if (!here && microbatches > 1)
      return op->emitError() << "couples microbatches: the batch is the minor part of dim " << time.dim
                             << " of its operand, which it takes apart in another way; say batch.microbatches: 1";
    if (batch && here != batch && microbatches > 1)
      return op->emitError() << "couples microbatches: the batch is dim " << time.dim
                             << " of one operand and elsewhere in another; say batch.microbatches: 1";
    if (here)
      batch = here;
  }
  if (!batch)
    return batch;
  const Factor &factor = rule.factors[batch->factor];
  if (factor.size / batch->outer % microbatches)
    return op->emitError() << "the batch of " << factor.size / batch->outer << " does not divide into " << microbatches
                           << " microbatches";
  if (factor.kind == FactorKind::Indexed && microbatches > 1)
    return op->emitError() << "couples microbatches: its indices count rows of the whole batch; index the rows of each "
                              "sample (x[:, i] in place of x.flatten(0, 1)[j]), or say batch.microbatches: 1";
  if (factor.kind != FactorKind::Parallel && factor.kind != FactorKind::Sum && microbatches > 1)
    return op->emitError() << "couples microbatches: it works along the batch in a way that cannot be cut into "
                           << microbatches << "; say batch.microbatches: 1";
  return batch;
}

/// Backward over the ops: an op is needed at the places of its users, or in the loop that makes it.
void BatchTimes::place(StepOp step) {
  DenseMap<Value, unsigned> needed;
  for (Value result : step.getTerminator()->getOperands())
    needed[result] |= Behind;
  for (Operation &op : llvm::reverse(step.getBlock().without_terminator())) {
    unsigned where = 0;
    if (op.getNumResults() == 0)
      where = Behind;
    for (Value result : op.getResults()) {
      BatchTime time = of(result);
      unsigned asked = needed.lookup(result);
      if (!asked)
        continue;
      if (time.time == Time::Sum)
        where |= isDataSum(result) ? InDataLoop : InLoop;
      else if (time.time == Time::After)
        where |= Behind;
      else if (time.time == Time::Sliced)
        where |= (asked & InDataLoop) | (asked & (InLoop | Behind) ? unsigned(InLoop) : 0u);
      else
        where |= asked;
    }
    places[&op] = where;
    if (isa<ReadOp>(op))
      continue;
    for (OpOperand &operand : op.getOpOperands())
      if (!isa<CotangentOp>(op) || operand.getOperandNumber() == 1) // the loss itself is not needed
        needed[operand.get()] |= where;
  }
}

} // namespace par
