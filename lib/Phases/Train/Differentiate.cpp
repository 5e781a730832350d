// Makes @train from @eval by reverse mode: ops that depend smoothly on a parameter are visited backwards, each op's
// gradient interface gives its operands' cotangents, and cotangents of one value are summed stage by stage.
#include "SettleMode.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Modes.h"
#include "par/Dialect/Par.h"
#include "par/Phases/Train/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

/// Gives every op that is built the stage of the forward op that it is built for.
struct StageListener : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    if (stage && isTensorOp(op))
      setStage(op, *stage);
  }
  std::optional<int64_t> stage;
};

/// Reverse mode over one step, whose forward part is all there is.
class ReverseMode {
public:
  explicit ReverseMode(StepOp step)
      : step(step), module(step->getParentOfType<ModuleOp>()), builder(step.getTerminator(), &listener) {}

  /// Builds the backward part; the loss is the step's first result.
  LogicalResult run();

private:
  bool isActive(Value value) const { return active.contains(value); }
  void findActive();
  LogicalResult seed();
  LogicalResult differentiate(Operation *op);
  Value addParts(Location loc, ArrayRef<Value> parts);
  Value takeCotangent(Value value);
  LogicalResult addGradients(ArrayRef<ReadOp> reads);

  StepOp step;
  ModuleOp module;
  StageListener listener;
  OpBuilder builder;
  DenseSet<Value> active;                             ///< floats that depend on a parameter
  DenseMap<Value, SmallVector<Value, 2>> contributed; ///< a cotangent for each use, the last one's first
};

} // namespace

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

static bool readsParameter(Operation *op) {
  auto read = dyn_cast<ReadOp>(op);
  if (!read)
    return false;
  auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr());
  return variable && variable.getKind() == VariableKind::parameter;
}

/// Fills `active` with the values that depend differentiably on a parameter.
void ReverseMode::findActive() {
  for (Operation &op : step.getBlock())
    if (readsParameter(&op) || llvm::any_of(op.getOperands(), [&](Value value) { return isActive(value); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
}

/// After it: the loss has its cotangent.
LogicalResult ReverseMode::seed() {
  Value loss = step.getTerminator()->getOperand(0);
  auto type = dyn_cast<RankedTensorType>(loss.getType());
  if (!type || type.getRank() != 0 || !isFloat(loss))
    return step.emitOpError() << "returns " << loss.getType() << " as its loss, expected a float scalar";
  if (!isActive(loss))
    return step.emitError() << "the loss depends on no parameter that is trained";
  Operation *source = loss.getDefiningOp();
  Value one = buildSplat(builder, loss.getLoc(), type, 1);
  listener.stage = getStage(source);
  contributed[loss] = {CotangentOp::create(builder, loss.getLoc(), loss, one)};
  return success();
}

/// Adds parts up, those of one stage first, in that stage, so that one value a stage is transferred or accumulated over
/// microbatches. Null if there are no parts.
Value ReverseMode::addParts(Location loc, ArrayRef<Value> parts) {
  SmallVector<std::pair<std::optional<int64_t>, Value>, 2> sums; // stages in the order of their first parts
  for (Value part : parts) {
    std::optional<int64_t> stage = part.getDefiningOp() ? getStage(part.getDefiningOp()) : std::nullopt;
    auto *same = llvm::find_if(sums, [&](auto &sum) { return sum.first == stage; });
    if (same == sums.end()) {
      sums.push_back({stage, part});
      continue;
    }
    listener.stage = stage;
    same->second = AddOp::create(builder, loc, same->second, part);
  }
  listener.stage.reset();
  Value whole;
  for (auto &[stage, sum] : sums)
    whole = whole ? AddOp::create(builder, loc, whole, sum).getResult() : sum;
  return whole;
}

/// Sum of the contributions of a value's uses; null if there are none.
Value ReverseMode::takeCotangent(Value value) {
  auto at = contributed.find(value);
  if (at == contributed.end())
    return {};
  Value sum = addParts(value.getLoc(), at->second);
  at->second = {sum};
  return sum;
}

/// Passes the cotangents of an op's results on to its operands.
LogicalResult ReverseMode::differentiate(Operation *op) {
  if (llvm::none_of(op->getOperands(), [&](Value value) { return isActive(value); }))
    return success();
  SmallVector<Value> cotangents;
  for (Value result : op->getResults())
    cotangents.push_back(takeCotangent(result));
  if (llvm::none_of(cotangents, [](Value value) { return value != nullptr; }))
    return success();

  listener.stage = getStage(op);
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  FailureOr<SmallVector<Value>> parts = failure();
  if (differentiable)
    parts = differentiable.differentiate(builder, cotangents);
  if (failed(parts))
    return op->emitError() << "op " << op->getName().stripDialect()
                           << " cannot be differentiated yet, and the loss depends on a parameter through it";
  for (auto [operand, part] : llvm::zip_equal(op->getOperands(), *parts))
    if (part && isActive(operand))
      contributed[operand].push_back(part);
  return success();
}

/// One line for all parameters that no gradient reaches: a module that is detached has many.
static void warnOfUntrained(ArrayRef<VariableOp> idle) {
  if (idle.empty())
    return;
  constexpr size_t shown = 3;
  std::string names;
  for (VariableOp variable : idle.take_front(shown))
    names += (names.empty() ? "\"" : ", \"") + variable.getSymName().str() + "\"";
  if (idle.size() > shown)
    names += " and " + std::to_string(idle.size() - shown) + " more";
  bool one = idle.size() == 1;
  VariableOp first = idle.front();
  first.emitWarning() << names << (one ? " is" : " are") << " not trained: the loss does not depend on "
                      << (one ? "it" : "them");
}

/// One gradient a parameter, in the order of the variables.
LogicalResult ReverseMode::addGradients(ArrayRef<ReadOp> reads) {
  bool some = false;
  SmallVector<VariableOp> idle;
  for (auto variable : module.getOps<VariableOp>()) {
    if (variable.getKind() != VariableKind::parameter)
      continue;
    SmallVector<Value> parts;
    for (ReadOp read : reads)
      if (auto at = contributed.find(read); at != contributed.end() && read.getVariable() == variable.getSymName())
        parts.append(at->second.begin(), at->second.end());
    listener.stage.reset();
    Value sum = addParts(variable.getLoc(), parts);
    some |= sum != nullptr;
    if (sum)
      GradientOp::create(builder, variable.getLoc(), sum, /*rows=*/Value(), variable.getSymName());
    else
      idle.push_back(variable);
  }
  warnOfUntrained(idle);
  return some ? success()
              : LogicalResult(step.emitError()
                              << "the loss depends on parameters only through steps (rounding, comparing, "
                                 "choosing), whose gradient is 0: nothing can be trained");
}

LogicalResult ReverseMode::run() {
  findActive();
  SmallVector<Operation *> forward;
  SmallVector<ReadOp> reads;
  for (Operation &op : step.getBlock().without_terminator()) {
    if (auto read = dyn_cast<ReadOp>(op))
      reads.push_back(read);
    else
      forward.push_back(&op);
  }
  if (failed(seed()))
    return failure();
  for (Operation *op : llvm::reverse(forward))
    if (failed(differentiate(op)))
      return failure();
  if (failed(addGradients(reads)))
    return failure();
  eraseDead(step.getBlock());
  return success();
}

/// Removes writes that only a training step does from @eval.
static void dropWrites(StepOp eval) {
  bool writes = false;
  for (WriteOp write : llvm::make_early_inc_range(eval.getBlock().getOps<WriteOp>())) {
    write.erase();
    writes = true;
  }
  if (writes)
    eraseDead(eval.getBlock());
}

/// A copy of @eval named @train, which returns the loss and the other scalars.
static FailureOr<StepOp> cloneForward(StepOp eval) {
  if (Operation *taken = SymbolTable::lookupNearestSymbolFrom(eval, StringAttr::get(eval.getContext(), "train")))
    return taken->emitOpError() << "is there already; Train makes @train of @eval";
  if (eval.getTerminator()->getNumOperands() == 0)
    return eval.emitOpError() << "returns nothing, expected a loss";
  auto train = cast<StepOp>(eval->clone());
  OpBuilder builder(eval->getContext());
  builder.setInsertionPointAfter(eval);
  builder.insert(train);
  train.setSymName("train");
  Operation *terminator = train.getTerminator();
  SmallVector<Value> results{terminator->getOperand(0)};
  SmallVector<Attribute> names{builder.getStringAttr("loss")};
  if (ArrayAttr outputs = train.getOutputsAttr())
    for (auto [result, name] : llvm::drop_begin(llvm::zip(terminator->getOperands(), outputs)))
      if (getTensorType(result.getType()).getRank() == 0) {
        results.push_back(result);
        names.push_back(name);
      }
  terminator->setOperands(results);
  train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), ValueRange(results).getTypes()));
  train.setOutputsAttr(builder.getArrayAttr(names));
  train.removeResAttrsAttr();
  return train;
}

/// Whether a bound depends on the number of steps that have drawn, as Dropout's does: it is 0 in evaluation.
static bool isCounted(Value bound) {
  SetVector<Operation *> slice;
  (void)getBackwardSlice(bound, &slice, BackwardSliceOptions());
  return llvm::any_of(slice, [](Operation *op) {
    auto read = dyn_cast<ReadOp>(op);
    return read && read.getVariable() == drawsVariable;
  });
}

/// Whether the drawn numbers are only compared with such bounds.
static bool actsInTrainingAlone(RandomBitsOp draws) {
  SmallVector<Value> numbers{draws.getResult()};
  while (!numbers.empty())
    for (Operation *user : numbers.pop_back_val().getUsers()) {
      auto compare = dyn_cast<CompareOp>(user);
      if (compare ? !isCounted(compare.getRhs()) : !isa<ShiftRightOp, ConvertOp, MultiplyOp>(user))
        return false;
      if (!compare)
        numbers.push_back(user->getResult(0));
    }
  return true;
}

/// A module that draws only in training, in a form that is not recognised, would draw in evaluation too.
static void warnOfDraws(StepOp eval) {
  for (RandomBitsOp draws : eval.getBlock().getOps<RandomBitsOp>())
    if (!actsInTrainingAlone(draws)) {
      draws.emitWarning() << "draws random numbers where it evaluates (--eval), too; evaluate a bundle of the module "
                             "exported after eval() if it draws only in training";
      return;
    }
}

namespace {
struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  void runOnOperation() override {
    auto eval = getOperation().lookupSymbol<StepOp>("eval");
    if (!eval)
      return;
    FailureOr<StepOp> train = cloneForward(eval);
    if (failed(train))
      return signalPassFailure();
    settleMode(*train, true);
    settleMode(eval, false);
    warnOfDraws(eval);
    if (Operation *mode = getOperation().lookupSymbol(trainingVariable))
      mode->erase();
    if (failed(ReverseMode(*train).run()))
      return signalPassFailure();
    dropWrites(eval);
  }
};
} // namespace

} // namespace par
