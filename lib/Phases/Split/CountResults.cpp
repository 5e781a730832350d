// Says of each scalar result of @eval how its values of several batches make its value over all samples: that of one
// batch that holds them all.
//
// A mean over samples or labels is S / C: S a sum over the batch, C a constant or the number of labels that count, a
// sum too. Values of batches are then averaged with C as their weights, and samples that only fill up a batch can be
// taken off again, because S and C are sums over samples. BatchTimes proves that, with one microbatch a sample. Sums
// add up. A sum of several of these has each of them as a result of its own. A result of another form (a square root of
// a mean, a loss that compares the samples of a batch) is none of that.
//
// S / 8 of a batch of 8 may be a mean, or a sum in other units: the size of the batch is a number by now. A divisor
// that is a multiple of the samples is taken for a mean's.
#include "Trials.h"

#include "par/Dialect/Par.h"
#include "par/Dialect/Splat.h"
#include "par/Phases/Split/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_COUNTRESULTSPASS
#include "par/Phases/Split/Passes.h.inc"

namespace {

enum class Kind : uint8_t { Constant, Sum, Samples, Labels };

/// A part of a result: a constant, a sum, or a mean over samples or over `count` labels.
struct Term {
  Kind kind;
  Value count, value;
};

/// How a value that is looked at is divided in the result.
struct Scale {
  bool bySamples = false;
  Value count = nullptr;
};

/// Finds the parts of a result that add up to it. Values are those of `step`; their times are those of a copy.
class ResultTerms {
public:
  ResultTerms(const BatchTimes &times, const IRMapping &copies, int64_t samples, OpBuilder &builder)
      : times(times), copies(copies), samples(samples), builder(builder) {}
  /// None if it has another form.
  std::optional<SmallVector<Term>> find(Value value, Scale scale = {});

private:
  Value copyOf(Value value) const { return copies.lookup(value); }
  Time timeOf(Value value) const { return times.of(value).time; }
  /// The same for every batch; a value that is made of sums of data is not.
  bool isKnown(Value value) const { return timeOf(value) == Time::Invariant && !times.of(value).between; }
  bool isSumOverSamples(Value value) const;
  bool isDividedBySamples(Value value) const;
  bool isMultipleOfSamples(double divisor) const;
  Scale scaledBy(Operation *op, Scale scale) const;
  Value countOf(Value divisor) const;
  std::optional<SmallVector<Term>> findSum(Operation *op, Scale scale);
  std::optional<SmallVector<Term>> findOperand(Operation *op, unsigned operand, Scale scale);
  std::optional<SmallVector<Term>> findLeaf(Value value, Scale scale) const;

  const BatchTimes &times;
  const IRMapping &copies;
  int64_t samples;
  OpBuilder &builder;
};

} // namespace

/// Whether no sample's part depends on other samples, by a sum over the batch that it reads. With a single sample the
/// dim may be unknown: every sum is one of its own.
bool ResultTerms::isSumOverSamples(Value value) const {
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

bool ResultTerms::isMultipleOfSamples(double divisor) const {
  double times = divisor / static_cast<double>(samples);
  return times > 0.5 && std::abs(times - std::round(times)) < 1e-6 * times; // a product of floats
}

/// Whether what a sum adds up is divided by the samples before. In a batch of one, a sum of one number is a mean, too.
bool ResultTerms::isDividedBySamples(Value value) const {
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (samples == 1 && (!reduce || getTensorType(reduce.getOperand().getType()).getNumElements() == 1))
    return true;
  Operation *op = reduce ? reduce.getOperand().getDefiningOp() : nullptr;
  for (; op && isa<DivideOp, MultiplyOp, ReshapeOp, ConvertOp>(op); op = op->getOperand(0).getDefiningOp())
    if (scaledBy(op, {}).bySamples)
      return true;
  return false;
}

/// The scale of the first operand of a division or multiplication by a constant.
Scale ResultTerms::scaledBy(Operation *op, Scale scale) const {
  if (op->getNumOperands() != 2)
    return scale;
  std::optional<double> number = readSplat(op->getOperand(1));
  if (number && *number != 0)
    scale.bySamples |= isMultipleOfSamples(isa<DivideOp>(op) ? *number : 1 / *number);
  return scale;
}

/// The number of labels that a divisor stands for; null if it is none. A divisor that is at least 1 is the number
/// wherever a label counts, and elsewhere the sum is 0, too.
Value ResultTerms::countOf(Value divisor) const {
  Value value = divisor;
  while (Operation *op = value.getDefiningOp()) {
    if (isSumOverSamples(copyOf(value)))
      return value;
    if (isa<ConvertOp, ReshapeOp>(op))
      value = op->getOperand(0);
    else if (isa<MaximumOp>(op) && isKnown(copyOf(op->getOperand(1))) && readSplat(op->getOperand(1)).value_or(2) <= 1)
      value = op->getOperand(0);
    else
      return nullptr;
  }
  return nullptr;
}

std::optional<SmallVector<Term>> ResultTerms::findLeaf(Value value, Scale scale) const {
  if (!isSumOverSamples(copyOf(value)))
    return std::nullopt;
  if (scale.count)
    return SmallVector<Term>{{Kind::Labels, scale.count, value}};
  bool isMean = scale.bySamples || isDividedBySamples(value);
  return SmallVector<Term>{{isMean ? Kind::Samples : Kind::Sum, nullptr, value}};
}

/// The terms of a linear op's operand, each with a copy of the op.
std::optional<SmallVector<Term>> ResultTerms::findOperand(Operation *op, unsigned operand, Scale scale) {
  std::optional<SmallVector<Term>> terms = find(op->getOperand(operand), scale);
  if (terms)
    for (Term &term : *terms) {
      Operation *copy = builder.clone(*op);
      copy->setOperand(operand, term.value);
      term.value = copy->getResult(0);
    }
  return terms;
}

/// The terms of a sum or difference; those of one kind are one.
std::optional<SmallVector<Term>> ResultTerms::findSum(Operation *op, Scale scale) {
  std::optional<SmallVector<Term>> terms = find(op->getOperand(0), scale), more = find(op->getOperand(1), scale);
  if (!terms || !more)
    return std::nullopt;
  for (Term &term : *more) {
    Term *same =
        llvm::find_if(*terms, [&](const Term &other) { return other.kind == term.kind && other.count == term.count; });
    if (same == terms->end()) {
      if (isa<SubtractOp>(op))
        term.value = NegateOp::create(builder, op->getLoc(), term.value.getType(), term.value);
      terms->push_back(term);
      continue;
    }
    Operation *copy = builder.clone(*op);
    copy->setOperands({same->value, term.value});
    same->value = copy->getResult(0);
  }
  return terms;
}

std::optional<SmallVector<Term>> ResultTerms::find(Value value, Scale scale) {
  if (isKnown(copyOf(value))) {
    bool isSmall = std::abs(readSplat(value).value_or(1)) <= 1e-4; // in a mean over labels, against 0 / 0
    if (scale.count)
      return isSmall ? std::optional(SmallVector<Term>()) : std::nullopt;
    return SmallVector<Term>{{Kind::Constant, nullptr, value}};
  }
  Operation *op = value.getDefiningOp();
  if (!op || (timeOf(copyOf(value)) == Time::Sliced && samples > 1))
    return std::nullopt;
  if (isa<DivideOp>(op) && isKnown(copyOf(op->getOperand(1))))
    return findOperand(op, 0, scaledBy(op, scale));
  if (isa<DivideOp>(op)) {
    Value count = scale.count ? Value() : countOf(op->getOperand(1));
    return count ? findOperand(op, 0, {scale.bySamples, count}) : std::nullopt;
  }
  if (isa<AddOp, SubtractOp>(op))
    return findSum(op, scale);
  if (isa<MultiplyOp>(op) && isKnown(copyOf(op->getOperand(1))))
    return findOperand(op, 0, scaledBy(op, scale));
  if (isa<MultiplyOp>(op) && isKnown(copyOf(op->getOperand(0)))) {
    std::optional<double> number = readSplat(op->getOperand(0));
    scale.bySamples |= number && *number != 0 && isMultipleOfSamples(1 / *number);
    return findOperand(op, 1, scale);
  }
  auto reduce = dyn_cast<ReduceOp>(op);
  bool ofSums = reduce && reduce.getKind() == ReduceKind::sum && isSumOverSamples(copyOf(reduce.getOperand()));
  bool isLinear = isa<NegateOp, ReshapeOp>(op) || ofSums ||
                  (isa<ConvertOp>(op) && isa<FloatType>(getElementTypeOrSelf(value.getType())));
  return isLinear ? findOperand(op, 0, scale) : findLeaf(value, scale);
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

/// The terms of a result; none if it has another form. Other results may be such that the batch cannot be cut into
/// samples, so that it is looked at in a copy of the step that has only this one.
static std::optional<SmallVector<Term>> findTerms(StepOp step, Value result, StringRef name, int64_t samples) {
  OpBuilder builder(step);
  IRMapping copies;
  auto trial = cast<StepOp>(builder.clone(*step, copies));
  trial.setSymName("par.trial");
  keepResults(trial, [&](StringRef other) { return other == name; });
  std::optional<SmallVector<Term>> found;
  builder.setInsertionPoint(step.getTerminator());
  if (FailureOr<BatchTimes> times = timesQuietly(trial, samples); succeeded(times))
    found = ResultTerms(*times, copies, samples, builder).find(result);
  trial.erase();
  return found;
}

/// A constant goes with a mean, whose batches' weights leave it as it is; by itself it is one.
static void mergeConstant(OpBuilder &builder, SmallVector<Term> &terms) {
  Term *constant = llvm::find_if(terms, [](const Term &term) { return term.kind == Kind::Constant; });
  if (constant == terms.end())
    return;
  auto isMean = [](const Term &term) { return term.kind == Kind::Samples || term.kind == Kind::Labels; };
  Term *mean = llvm::find_if(terms, isMean);
  if (mean == terms.end()) {
    constant->kind = Kind::Samples;
    return;
  }
  mean->value = AddOp::create(builder, mean->value.getLoc(), mean->value.getType(), mean->value, constant->value);
  terms.erase(constant);
}

namespace {
/// Collects further results of a step.
class FurtherResults {
public:
  explicit FurtherResults(StepOp step)
      : step(step), builder(step.getTerminator()), names(step.getOutputs()->begin(), step.getOutputs()->end()) {}

  /// Says how values of batches of the result `name` are put together.
  void describe(Value result, StringRef name, std::optional<SmallVector<Term>> terms);
  void add(const Twine &name, Value value) {
    values.push_back(value);
    names.push_back(builder.getStringAttr(name));
  }
  Value number(double value) {
    return buildSplat(builder, step.getLoc(), RankedTensorType::get({}, builder.getF32Type()), value);
  }
  void finish();

private:
  void describeTerm(const Twine &name, const Term &term);

  StepOp step;
  OpBuilder builder;
  SmallVector<Attribute> names;
  SmallVector<Value> values;
};
} // namespace

void FurtherResults::describeTerm(const Twine &name, const Term &term) {
  if (term.kind == Kind::Sum)
    return add("sum(" + name + ")", number(1));
  if (term.kind != Kind::Labels)
    return;
  Value count = term.count;
  if (!isa<FloatType>(getElementTypeOrSelf(count.getType())))
    count = buildConvert(builder, count.getLoc(), count, builder.getF32Type());
  add("count(" + name + ")", count);
}

void FurtherResults::describe(Value result, StringRef name, std::optional<SmallVector<Term>> terms) {
  if (!terms)
    return add("batch(" + name + ")", number(1));
  if (terms->size() > 1)
    mergeConstant(builder, *terms);
  if (terms->empty())
    return;
  if (terms->size() == 1)
    return describeTerm(name, terms->front());
  add("terms(" + name + ")", number(static_cast<double>(terms->size())));
  for (auto [i, term] : llvm::enumerate(*terms)) {
    std::string part = ("term(" + name + "," + Twine(i) + ")").str();
    add(part, term.value);
    describeTerm(part, term);
  }
}

void FurtherResults::finish() {
  Operation *end = step.getTerminator();
  end->insertOperands(end->getNumOperands(), values);
  step.setFunctionType(builder.getFunctionType(step.getArgumentTypes(), end->getOperandTypes()));
  step.setOutputsAttr(builder.getArrayAttr(names));
}

/// Erases copies of ops that no result reads.
static void eraseUnused(StepOp step) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

static void countResults(StepOp step) {
  if (!step.getOutputs())
    return;
  int64_t samples = samplesOf(step);
  FurtherResults further(step);
  for (auto [result, name] :
       llvm::zip(step.getTerminator()->getOperands(), step.getOutputs()->getAsRange<StringAttr>()))
    if (getTensorType(result.getType()).getRank() == 0)
      further.describe(result, name, findTerms(step, result, name, samples));
  further.finish();
  eraseUnused(step);
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
