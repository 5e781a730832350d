#include "par/Dialect/Term.h"
#include "par/Interfaces/Optimizer.h"
#include "par/Plan/Optimizers.h"
#include "par/Train/Passes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_ADDOPTIMIZERPASS
#include "par/Train/Passes.h.inc"

namespace {

/// Adds updates to one training step.
class Updates {
public:
  Updates(StepOp step, const AddOptimizerPassOptions &options)
      : step(step), module(step->getParentOfType<ModuleOp>()), builder(step.getTerminator()),
        options(options) {}

  LogicalResult run();

private:
  LogicalResult readSettings(ArrayRef<std::string> texts, StringRef option,
                             llvm::StringMap<double> &settings);
  FailureOr<VariableOp> declare(const Twine &name, VariableKind kind, RankedTensorType type, VariableOp of);
  FailureOr<Value> readState(VariableOp parameter, StringRef suffix);
  LogicalResult addScalars();
  Value scaledRate(StringRef parameter);
  LogicalResult settle();
  LogicalResult update(GradientOp gradient);
  void write(Value value, const Twine &name) { WriteOp::create(builder, value.getLoc(), value, name.str()); }

  StepOp step;
  ModuleOp module;
  OpBuilder builder;
  const AddOptimizerPassOptions &options;
  std::optional<Optimizer> optimizer;
  SmallVector<std::pair<StringRef, Attribute>> attributes; ///< of every update, but for its weight decay
  llvm::StringMap<double> lrScales, decays;
  llvm::StringMap<Value> weights; ///< what each parameter was read as
  Value lr, count;                ///< learning rate; number of this step, from 1, where the kind needs it
  llvm::DenseMap<uint64_t, Value> rates;
};

} // namespace

/// Reads `name=number` settings.
LogicalResult Updates::readSettings(ArrayRef<std::string> texts, StringRef option,
                                    llvm::StringMap<double> &settings) {
  for (StringRef text : texts) {
    auto [name, number] = text.rsplit('=');
    double value;
    if (number.getAsDouble(value))
      return step.emitOpError() << option << " has \"" << text << "\", expected "
                                << (option == "settings" ? "name" : "parameter") << "=number";
    settings[name] = value;
  }
  return success();
}

/// A new variable; a state lies behind its parameter and as its parameter does.
FailureOr<VariableOp> Updates::declare(const Twine &name, VariableKind kind, RankedTensorType type,
                                       VariableOp of) {
  StringAttr symbol = builder.getStringAttr(name);
  if (Operation *taken = module.lookupSymbol(symbol)) {
    InFlightDiagnostic error = step.emitError()
                               << "training needs a variable @" << symbol.getValue() << " of its own";
    error.attachNote(taken->getLoc()) << "the name is taken here";
    return error;
  }
  OpBuilder outside(*module.getOps<StepOp>().begin());
  FlatSymbolRefAttr parameter;
  if (of) {
    parameter = FlatSymbolRefAttr::get(of.getSymNameAttr());
    outside.setInsertionPointAfter(of);
    auto next = dyn_cast<VariableOp>(*outside.getInsertionPoint());
    if (next && next.getOfAttr() == parameter) // its first state
      outside.setInsertionPointAfter(next);
  }
  return VariableOp::create(outside, of ? of.getLoc() : step.getLoc(), symbol,
                            VariableKindAttr::get(module.getContext(), kind), parameter, TypeAttr::get(type),
                            of ? of.getStoredAttr() : TypeAttr(), of ? of.getShardingAttr() : ShardingAttr(),
                            ArrayAttr(), ElementsAttr(), builder.getStringAttr("zeros"), DictionaryAttr());
}

/// Declares and reads one state of a parameter.
FailureOr<Value> Updates::readState(VariableOp parameter, StringRef suffix) {
  FailureOr<VariableOp> state =
      declare(parameter.getSymName() + suffix, VariableKind::state, parameter.getTensorType(), parameter);
  if (failed(state))
    return failure();
  return Value(ReadOp::create(builder, parameter.getLoc(), parameter.getTensorType(), state->getSymName()));
}

/// After it: `lr` and, where it is needed, `count` are read, and the count is written back.
LogicalResult Updates::addScalars() {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  FailureOr<VariableOp> rate = declare("lr", VariableKind::hyper, scalar, {});
  if (failed(rate))
    return failure();
  rate->removeInitAttr();
  rate->setValueAttr(DenseElementsAttr::get(scalar, static_cast<float>(options.lr)));
  lr = ReadOp::create(builder, step.getLoc(), scalar, "lr");
  if (!optimizer->countsSteps())
    return success();
  if (failed(declare("step", VariableKind::counter, scalar, {})))
    return failure();
  Term before(builder, step.getLoc(), ReadOp::create(builder, step.getLoc(), scalar, "step"));
  count = before + 1.0;
  write(count, "step");
  return success();
}

/// The learning rate of one parameter; parameters with one scale share it.
Value Updates::scaledRate(StringRef parameter) {
  auto at = lrScales.find(parameter);
  if (at == lrScales.end() || at->second == 1)
    return lr;
  Value &rate = rates[llvm::bit_cast<uint64_t>(at->second)];
  if (!rate)
    rate = Term(builder, step.getLoc(), lr) * at->second;
  return rate;
}

/// Updates the parameter of one gradient and writes it and its state.
LogicalResult Updates::update(GradientOp gradient) {
  StringRef name = gradient.getVariable();
  auto parameter = module.lookupSymbol<VariableOp>(name);
  Value weight = weights.lookup(name), rate = scaledRate(name);
  OperationState state(gradient.getLoc(), optimizer->op);
  state.addOperands({weight, gradient});
  state.addTypes(weight.getType());
  for (StringRef suffix : optimizer->getStates()) {
    FailureOr<Value> old = readState(parameter, suffix);
    if (failed(old))
      return failure();
    state.addOperands(*old);
    state.addTypes(old->getType());
  }
  if (count)
    state.addOperands(count);
  state.addOperands(rate);
  for (auto &[setting, value] : attributes)
    state.addAttribute(setting, value);
  state.addAttribute("weight_decay",
                     builder.getF64FloatAttr(decays.contains(name) ? decays.lookup(name) : options.decay));
  Operation *update = builder.create(state);
  write(update->getResult(0), name);
  for (auto [suffix, result] : llvm::zip(optimizer->getStates(), update->getResults().drop_front()))
    write(result, name + suffix);
  return success();
}

/// After it: `attributes` are those of the updates, by default or as said.
LogicalResult Updates::settle() {
  llvm::StringMap<double> said;
  if (failed(readSettings(options.settings, "settings", said)))
    return failure();
  const OptimizerKind *kind = findOptimizerKind(options.kind);
  for (const OptimizerSetting &setting : kind ? kind->settings : ArrayRef<OptimizerSetting>()) {
    double value = said.contains(setting.attribute) ? said.lookup(setting.attribute) : setting.value;
    attributes.emplace_back(setting.attribute, setting.flag ? Attribute(builder.getBoolAttr(value != 0))
                                                              : builder.getF64FloatAttr(value));
    said.erase(setting.attribute);
  }
  if (!said.empty())
    return step.emitOpError() << "has the setting \"" << said.begin()->getKey() << "\", which " << optimizer->op
                              << " does not take";
  return success();
}

LogicalResult Updates::run() {
  optimizer = findOptimizer(step.getContext(), options.kind);
  if (!optimizer)
    return step.emitOpError() << "has the optimizer \"" << options.kind << "\", expected one of "
                              << llvm::join(optimizerKinds(step.getContext()), ", ");
  if (failed(settle()) || failed(readSettings(options.lrScales, "lr-scales", lrScales)) ||
      failed(readSettings(options.decays, "decays", decays)))
    return failure();
  SmallVector<GradientOp> gradients(step.getBlock().getOps<GradientOp>());
  for (const auto *settings : {&lrScales, &decays})
    for (StringRef name : settings->keys()) {
      auto variable = module.lookupSymbol<VariableOp>(name);
      if (!variable || variable.getKind() != VariableKind::parameter)
        return step.emitOpError() << "has a setting for @" << name << ", which is no parameter";
    }
  for (auto read : step.getBlock().getOps<ReadOp>())
    weights.try_emplace(read.getVariable(), read);
  if (failed(addScalars()))
    return failure();
  for (GradientOp gradient : gradients)
    if (failed(update(gradient)))
      return failure();
  return success();
}

namespace {
struct AddOptimizerPass : impl::AddOptimizerPassBase<AddOptimizerPass> {
  using Base::Base;
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<StepOp>("train");
    AddOptimizerPassOptions options{kind, lr, {}, decay, {}, {}};
    options.settings.assign(settings.begin(), settings.end());
    options.lrScales.assign(lrScales.begin(), lrScales.end());
    options.decays.assign(decays.begin(), decays.end());
    if (step && failed(Updates(step, options).run()))
      signalPassFailure();
  }
};
} // namespace

} // namespace par
