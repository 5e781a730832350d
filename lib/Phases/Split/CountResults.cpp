// Says of each scalar result of @eval how its values of several batches make its value over all samples.
//
// A mean over samples or labels is S / C: S a sum over the batch, C a constant or the number of labels that count, a
// sum too. Values of batches are then averaged with C as their weights, and samples that only fill up a batch can be
// taken off again, because S and C are sums over samples. BatchTimes proves that, with one microbatch a sample. A
// result of another form (a square root of a mean, a loss that compares the samples of a batch) is none of that.
#include "Trials.h"

#include "par/Dialect/Par.h"
#include "par/Dialect/Splat.h"
#include "par/Phases/Split/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_COUNTRESULTSPASS
#include "par/Phases/Split/Passes.h.inc"

namespace {

/// The sums that a result is linear in. All are divided by one number: `count`, or a constant.
struct Parts {
  bool some = false;
  Value count;

  bool add(Value divisor) {
    bool fits = !some || count == divisor;
    some = true;
    count = divisor;
    return fits;
  }
};

class ResultParts {
public:
  ResultParts(const BatchTimes &times, int64_t samples) : times(times), samples(samples) {}
  /// Adds the sums that a value is linear in; false if it has another form.
  bool find(Value value, Parts &parts) const;

private:
  Time timeOf(Value value) const { return times.of(value).time; }
  /// The same for every batch; a value that is made of sums of data is not.
  bool isKnown(Value value) const { return timeOf(value) == Time::Invariant && !times.of(value).between; }
  bool isSumOverSamples(Value value) const;
  bool findQuotient(DivideOp divide, Parts &parts) const;
  Value countOf(Value divisor) const;

  const BatchTimes &times;
  int64_t samples;
};

} // namespace

/// Whether no sample's part depends on other samples, by a sum over the batch that it reads. With a single sample the
/// dim may be unknown: every sum is one of its own.
bool ResultParts::isSumOverSamples(Value value) const {
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (samples == 1 && reduce && reduce.getKind() == ReduceKind::sum)
    return !isKnown(value);
  if (timeOf(value) != Time::Sum)
    return false;
  SetVector<Operation *> makers;
  BackwardSliceOptions options;
  options.inclusive = true;
  (void)getBackwardSlice(value, &makers, options);
  auto isSliced = [&](Value each) { return timeOf(each) == Time::Sliced; };
  auto isOfBatch = [&](Value each) { return !isSliced(each) && !isKnown(each); };
  return llvm::none_of(makers, [&](Operation *op) {
    return llvm::any_of(op->getOperands(), isSliced) && llvm::any_of(op->getOperands(), isOfBatch);
  });
}

/// The number of labels that a divisor stands for; null if it is none. A divisor that is at least 1 is the number
/// wherever a label counts, and elsewhere the sum is 0, too.
Value ResultParts::countOf(Value divisor) const {
  Value value = divisor;
  while (Operation *op = value.getDefiningOp()) {
    if (isSumOverSamples(value))
      return value;
    if (isa<ConvertOp, ReshapeOp>(op))
      value = op->getOperand(0);
    else if (isa<MaximumOp>(op) && isKnown(op->getOperand(1)) && readSplat(op->getOperand(1)).value_or(2) <= 1)
      value = op->getOperand(0);
    else
      return nullptr;
  }
  return nullptr;
}

bool ResultParts::findQuotient(DivideOp divide, Parts &parts) const {
  if (isKnown(divide.getRhs()))
    return find(divide.getLhs(), parts);
  Parts dividend;
  Value count = countOf(divide.getRhs());
  return count && find(divide.getLhs(), dividend) && dividend.some && !dividend.count && parts.add(count);
}

bool ResultParts::find(Value value, Parts &parts) const {
  if (isKnown(value))
    return true;
  if (isSumOverSamples(value))
    return parts.add(nullptr);
  Operation *op = value.getDefiningOp();
  if (!op || (timeOf(value) == Time::Sliced && samples > 1))
    return false;
  if (auto divide = dyn_cast<DivideOp>(op))
    return findQuotient(divide, parts);
  if (isa<AddOp, SubtractOp>(op))
    return find(op->getOperand(0), parts) && find(op->getOperand(1), parts);
  if (isa<MultiplyOp>(op) && (isKnown(op->getOperand(0)) || isKnown(op->getOperand(1))))
    return find(op->getOperand(isKnown(op->getOperand(0)) ? 1 : 0), parts);
  bool isLinear =
      isa<NegateOp, ReshapeOp>(op) || (isa<ConvertOp>(op) && isa<FloatType>(getElementTypeOrSelf(value.getType())));
  return isLinear && find(op->getOperand(0), parts);
}

/// The samples of the step; 1 if no input has any.
static int64_t samplesOf(StepOp step) {
  std::optional<ArrayRef<int64_t>> dims = step.getBatchDims();
  for (BlockArgument argument : step.getArguments()) {
    int64_t dim = dims ? (*dims)[argument.getArgNumber()] : 0;
    RankedTensorType type = getTensorType(argument.getType());
    if (dim >= 0 && dim < type.getRank())
      return type.getDimSize(dim);
  }
  return 1;
}

/// The number that a result is a mean over: null for samples; none if it is no mean over samples. Other results may be
/// such that the batch cannot be cut into samples, so that it is looked for in a step that has only this one.
static std::optional<Value> findCount(StepOp step, Value result, StringRef name, int64_t samples) {
  OpBuilder builder(step);
  IRMapping copies;
  auto trial = cast<StepOp>(builder.clone(*step, copies));
  trial.setSymName("par.trial");
  keepResults(trial, [&](StringRef other) { return other == name; });
  FailureOr<BatchTimes> times = timesQuietly(trial, samples);
  Parts parts;
  std::optional<Value> found;
  if (succeeded(times) && ResultParts(*times, samples).find(copies.lookup(result), parts)) {
    found = Value();
    for (auto [original, copy] : copies.getValueMap())
      if (parts.count && copy == parts.count)
        found = original;
  }
  trial.erase();
  return found;
}

static void countResults(StepOp step) {
  if (!step.getOutputs())
    return;
  int64_t samples = samplesOf(step);
  Operation *end = step.getTerminator();
  OpBuilder builder(end);
  Type f32 = builder.getF32Type();
  SmallVector<Attribute> names(step.getOutputs()->begin(), step.getOutputs()->end());
  SmallVector<Value> counts;
  for (auto [result, name] : llvm::zip(end->getOperands(), step.getOutputs()->getAsRange<StringAttr>())) {
    if (getTensorType(result.getType()).getRank() != 0)
      continue;
    std::optional<Value> count = findCount(step, result, name, samples);
    if (count && !*count)
      continue;
    Value number = count ? *count : buildSplat(builder, result.getLoc(), RankedTensorType::get({}, f32), 1);
    if (!isa<FloatType>(getElementTypeOrSelf(number.getType())))
      number = buildConvert(builder, number.getLoc(), number, f32);
    counts.push_back(number);
    names.push_back(builder.getStringAttr((count ? "count(" : "batch(") + name.getValue() + ")"));
  }
  end->insertOperands(end->getNumOperands(), counts);
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(), end->getOperandTypes()));
  step.setOutputsAttr(builder.getArrayAttr(names));
}

namespace {
struct CountResultsPass : impl::CountResultsPassBase<CountResultsPass> {
  void runOnOperation() override {
    if (auto eval = getOperation().lookupSymbol<StepOp>("eval"))
      countResults(eval);
  }
};
} // namespace

} // namespace par
