// Averages of the weights (torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn): a state a parameter, written
// from the value that the step writes into the parameter.
#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_AVERAGEWEIGHTSPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {

constexpr StringRef suffix = ".ema", counter = "averages";

class Averager {
public:
  Averager(StepOp step, const AverageWeightsPassOptions &options)
      : step(step), module(step->getParentOfType<ModuleOp>()), builder(step.getTerminator()), options(options) {}
  LogicalResult run();

private:
  FailureOr<VariableOp> declare(const Twine &name, VariableKind kind, RankedTensorType type, VariableOp of);
  Term shareOfNew();
  LogicalResult average(WriteOp write, Term share);
  void readAverages(StepOp other);

  StepOp step;
  ModuleOp module;
  OpBuilder builder;
  const AverageWeightsPassOptions &options;
};

} // namespace

/// A new variable. That of a parameter is placed after the parameter's other states.
FailureOr<VariableOp> Averager::declare(const Twine &name, VariableKind kind, RankedTensorType type, VariableOp of) {
  StringAttr symbol = builder.getStringAttr(name);
  if (Operation *taken = module.lookupSymbol(symbol)) {
    InFlightDiagnostic error = step.emitError() << "training needs a variable @" << symbol.getValue() << " of its own";
    error.attachNote(taken->getLoc()) << "the name is taken here";
    return error;
  }
  OpBuilder outside(*module.getOps<StepOp>().begin());
  FlatSymbolRefAttr parameter = of ? FlatSymbolRefAttr::get(of.getSymNameAttr()) : FlatSymbolRefAttr();
  for (Operation *last = of; last; last = last->getNextNode()) {
    auto state = dyn_cast<VariableOp>(last);
    if (last != of.getOperation() && (!state || state.getOfAttr() != parameter))
      break;
    outside.setInsertionPointAfter(last);
  }
  TypeAttr stored = of ? of.getStoredAttr() : TypeAttr();
  if (stored)
    stored = TypeAttr::get(cast<RankedTensorType>(stored.getValue()).clone(type.getElementType()));
  return VariableOp::create(outside, of ? of.getLoc() : step.getLoc(), symbol,
                            VariableKindAttr::get(module.getContext(), kind), parameter, TypeAttr::get(type), stored,
                            of ? of.getShardingAttr() : ShardingAttr(), ArrayAttr(), ElementsAttr(),
                            builder.getStringAttr("zeros"), DictionaryAttr());
}

/// Share of the new weights in this step's averages: all of them in the first one.
Term Averager::shareOfNew() {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Term count(builder, step.getLoc(), ReadOp::create(builder, step.getLoc(), scalar, counter));
  Term decay = count.splat(options.decay);
  if (options.warmup)
    decay = minimum(decay, (count + 1.0) / (count + 10.0));
  Term isFirst = count.compare(Predicate::eq, 0);
  WriteOp::create(builder, step.getLoc(), count + 1.0, counter);
  return isFirst.select(count.splat(1), 1.0 - decay);
}

LogicalResult Averager::average(WriteOp write, Term share) {
  auto parameter = module.lookupSymbol<VariableOp>(write.getVariable());
  RankedTensorType type = parameter.getTensorType();
  if (type.getElementTypeBitWidth() < 32)
    type = type.clone(builder.getF32Type());
  std::string name = (parameter.getSymName() + suffix).str();
  FailureOr<VariableOp> variable = declare(name, VariableKind::state, type, parameter);
  if (failed(variable))
    return failure();
  Location loc = write.getLoc();
  Term before(builder, loc, ReadOp::create(builder, loc, type, name));
  Term now = before.with(buildConvert(builder, loc, write.getOperand(), type.getElementType()));
  Term own = share.convert(type.getElementType()).broadcast(type.getShape());
  WriteOp::create(builder, loc, before + own * (now - before), name);
  return success();
}

/// Reads the averages in place of the weights that have one.
void Averager::readAverages(StepOp other) {
  for (ReadOp read : llvm::to_vector(other.getBlock().getOps<ReadOp>())) {
    auto average = module.lookupSymbol<VariableOp>((read.getVariable() + suffix).str());
    if (!average || !average.getOf() || *average.getOf() != read.getVariable())
      continue;
    OpBuilder before(read);
    Value value = ReadOp::create(before, read.getLoc(), average.getTensorType(), average.getSymName());
    if (std::optional<int64_t> stage = getStage(read))
      setStage(value.getDefiningOp(), *stage);
    Type element = getElementTypeOrSelf(read.getResult().getType());
    Value converted = buildConvert(before, read.getLoc(), value, element);
    if (std::optional<int64_t> stage = getStage(read); stage && converted != value)
      setStage(converted.getDefiningOp(), *stage);
    read.replaceAllUsesWith(converted);
    read.erase();
  }
}

LogicalResult Averager::run() {
  if (!(options.decay >= 0 && options.decay <= 1))
    return step.emitOpError() << "averages weights with the decay " << options.decay << ", expected one from 0 to 1";
  SmallVector<WriteOp> writes;
  for (auto write : step.getBlock().getOps<WriteOp>())
    if (module.lookupSymbol<VariableOp>(write.getVariable()).getKind() == VariableKind::parameter)
      writes.push_back(write);
  if (writes.empty())
    return success();
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  if (failed(declare(counter, VariableKind::counter, scalar, {})))
    return failure();
  Term share = shareOfNew();
  for (WriteOp write : writes)
    if (failed(average(write, share)))
      return failure();
  for (StepOp other : module.getOps<StepOp>())
    if (options.eval && other != step)
      readAverages(other);
  return success();
}

namespace {
struct AverageWeightsPass : impl::AverageWeightsPassBase<AverageWeightsPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    if (step && failed(Averager(step, {decay, warmup, eval}).run()))
      signalPassFailure();
  }
};
} // namespace

} // namespace par
